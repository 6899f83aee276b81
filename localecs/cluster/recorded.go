package cluster

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"maps"
	"net/http"
	"strconv"
	"strings"
)

type recorded struct {
	header http.Header
	status int
	body   []byte
}

// Header implements http.ResponseWriter.
func (a *recorded) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *recorded) WriteHeader(status int) {
	a.status = cmp.Or(a.status, status)
}

// Write implements http.ResponseWriter.
func (a *recorded) Write(text []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	a.body = append(a.body, text...)
	return len(text), nil
}

// page replaces the answer by that of a proxy between the task and the endpoint.
func (a *recorded) page() {
	a.header.Set("Content-Type", "text/html")
	a.status = http.StatusOK
	a.body = []byte("<html>\n<head><title>Welcome</title></head>\n<body><h1>Sign in to continue</h1></body>\n</html>\n")
}

// empty leaves the outermost object or element of an answer.
func (a *recorded) empty() {
	if !strings.Contains(a.header.Get("Content-Type"), "xml") {
		a.body = []byte("{}")
		return
	}
	var root struct{ XMLName xml.Name }
	if xml.Unmarshal(a.body, &root) != nil {
		a.body = nil
		return
	}
	var b bytes.Buffer
	b.WriteString("<" + root.XMLName.Local + ` xmlns="` + root.XMLName.Space + `"></` + root.XMLName.Local + ">\n")
	a.body = b.Bytes()
}

// send sends the answer, or half of it and then the connection's end.
func (a *recorded) send(w http.ResponseWriter, cut bool) {
	maps.Copy(w.Header(), a.header)
	w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	a.WriteHeader(http.StatusOK) // no other status was written
	w.WriteHeader(a.status)
	if !cut {
		w.Write(a.body) // an error means the client is gone
		return
	}
	w.Write(a.body[:len(a.body)/2])
	_ = http.NewResponseController(w).Flush() // the caller is gone, or gets it
	panic(http.ErrAbortHandler)
}

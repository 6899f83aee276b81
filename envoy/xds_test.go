package envoy

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// response is a DeltaDiscoveryResponse with resources of these names, each with a
// version before its name and a body after it.
func response(names ...string) []byte {
	message := appendText(nil, 1, "system version")
	for _, name := range names {
		resource := appendText(appendText(appendText(nil, 1, "version"), resourceName, name), 2, "body")
		message = appendBytes(message, responseResources, resource)
	}
	return appendText(message, 4, listenerType)
}

func TestResourceNames(t *testing.T) {
	t.Parallel()
	names, err := resourceNames(response("public_listener:10.0.0.1:20000", "api:127.0.0.1:1234"))
	if want := []string{"public_listener:10.0.0.1:20000", "api:127.0.0.1:1234"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("names %q, %v; want %q", names, err, want)
	}
	if names, err = resourceNames(response()); len(names) != 0 || err != nil {
		t.Errorf("no resources: %q, %v", names, err)
	}
	whole := response("api")
	if _, err = resourceNames(whole[:len(whole)-1]); err == nil {
		t.Error("a part of an answer is taken for all of it")
	}
}

func FuzzResourceNames(f *testing.F) {
	f.Add(response("api"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, message []byte) {
		names, err := resourceNames(message)
		if err == nil && len(names) > len(message) {
			t.Errorf("%d names of %d bytes", len(names), len(message))
		}
	})
}

func TestFrame(t *testing.T) {
	t.Parallel()
	if got := frame([]byte("abc")); !bytes.Equal(got, []byte("\x00\x00\x00\x00\x03abc")) {
		t.Errorf("frame %q", got)
	}
	for text, want := range map[string]string{
		"\x00\x00\x00\x00\x03abcd": "",
		"\x01\x00\x00\x00\x03abc":  "compression 1",
		"\x00\x7f\x00\x00\x00abc":  "a frame of 2130706432 bytes",
		"\x00\x00\x00\x00\x03ab":   "EOF",
	} {
		message, err := readFrame(strings.NewReader(text))
		if want == "" && (err != nil || string(message) != "abc") || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %q, %v; want error %q", text, message, err, want)
		}
	}
	if _, err := readFrame(strings.NewReader("")); !errors.Is(err, io.EOF) {
		t.Errorf("nothing: %v", err)
	}
}

func TestNodeHasEnvoysVersion(t *testing.T) {
	t.Parallel()
	var semantic []byte
	for i, n := range []uint64{1, 40, 2} {
		semantic = protowire.AppendVarint(protowire.AppendTag(semantic, protowire.Number(i+1), protowire.VarintType), n)
	}
	for _, version := range []string{"1.40.2", "1.40.2-dev"} {
		if got := node(Proxy{ID: "web-1"}, version); !bytes.HasSuffix(got, semantic) {
			t.Errorf("%s: %x, want %x at the end", version, got, semantic)
		}
	}
}

// TestReadResources has what the admin endpoint of Envoy 1.40 answers.
func TestReadResources(t *testing.T) {
	t.Parallel()
	answers := map[string]string{
		listenersPath: `{"configs": [{"name": "api:127.0.0.1:1234", "active_state": {"version_info": "1"}}, {"name": "old:127.0.0.1:1235"}]}`,
		clustersPath: `{"configs": [{"cluster": {"name": "api.consul", "type": "EDS", "eds_cluster_config": {}}},
			{"cluster": {"name": "other.consul", "type": "EDS", "eds_cluster_config": {"service_name": "other"}}}, {"cluster": {"name": "local_app", "type": "STATIC"}}]}`,
		versionPath: `{"version": "9e558093/1.40.0/Clean/RELEASE/BoringSSL"}`,
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, answers[r.URL.String()]) }))
	defer s.Close()
	r, err := readResources(t.Context(), s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string][]string{
		listenerType: {"api:127.0.0.1:1234"},
		clusterType:  {"api.consul", "other.consul", "local_app"},
		endpointType: {"api.consul", "other"},
	} {
		if !slices.Equal(r[kind], want) {
			t.Errorf("%s: %q, want %q", kind, r[kind], want)
		}
	}
	if version, err := readVersion(t.Context(), s.Listener.Addr().String()); version != "1.40.0" || err != nil {
		t.Errorf("version %q, %v", version, err)
	}
}

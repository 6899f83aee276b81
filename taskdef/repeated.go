package taskdef

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// repeatedKeys warns about keys that an object has twice: only the last one
// counts, for the AWS tools as for us, which is never meant. The document is
// known to be JSON.
func repeatedKeys(doc []byte) []Warning {
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber() // any number is one
	var found []Warning
	var walk func(path string)
	object := func(path string) {
		seen := map[string]bool{}
		for dec.More() {
			token, _ := dec.Token()
			key := fmt.Sprint(token)
			if seen[key] {
				found = append(found, Warning{Path: path + "." + key, Message: "key given twice, the last one counts"})
			}
			seen[key] = true
			walk(path + "." + key)
		}
	}
	list := func(path string) {
		for i := 0; dec.More(); i++ {
			walk(fmt.Sprintf("%s[%d]", path, i))
		}
	}
	walk = func(path string) {
		token, err := dec.Token()
		if err != nil {
			return
		}
		switch token {
		case json.Delim('{'):
			object(path)
		case json.Delim('['):
			list(path)
		default:
			return
		}
		_, _ = dec.Token() // the closing bracket
	}
	walk("$")
	return found
}

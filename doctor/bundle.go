package doctor

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"sync"
	"time"

	"github.com/meshtask/consul-ecs/internal/secret"
)

// File is a part of a bundle.
type File struct {
	Name string
	Data []byte
}

// Bundle writes the files as a gzipped tar archive. Values of JSON members and of name and value pairs whose name looks
// like that of a secret are removed, and so are the given secrets anywhere.
func Bundle(w io.Writer, files []File, secrets []secret.Value, now time.Time) error {
	compressed := gzip.NewWriter(w)
	archive := tar.NewWriter(compressed)
	for _, f := range files {
		data := redact(f.Data, secrets)
		header := tar.Header{Name: "doctor/" + f.Name, Mode: 0o600, Size: int64(len(data)), ModTime: now}
		err := archive.WriteHeader(&header)
		if err == nil {
			_, err = archive.Write(data)
		}
		if err != nil {
			return fmt.Errorf("write the bundle: %w", err)
		}
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("write the bundle: %w", err)
	}
	return compressed.Close()
}

const redacted = "[redacted]"

// confidential matches names of members, variables and headers whose values are secrets.
var confidential = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)token|secret|password|passwd|private_?key|credential|authorization|api_?key`)
})

// redact returns JSON, or any other text, without secrets.
func redact(data []byte, secrets []secret.Value) []byte {
	var doc any
	if err := json.Unmarshal(data, &doc); err == nil {
		if indented, err := json.MarshalIndent(withoutSecrets(doc), "", "  "); err == nil {
			data = append(indented, '\n')
		}
	}
	text := string(data)
	for _, s := range secrets {
		if !s.Empty() {
			text = secret.NewLeaks(s).Redact(text)
		}
	}
	return []byte(text)
}

// withoutSecrets returns the document with the values of confidential names replaced.
func withoutSecrets(doc any) any {
	switch doc := doc.(type) {
	case map[string]any:
		for _, of := range []string{"name", "key", "Name", "Key"} {
			if name, is := doc[of].(string); is && confidential().MatchString(name) {
				for _, value := range []string{"value", "Value"} {
					if _, has := doc[value].(string); has {
						doc[value] = redacted
					}
				}
			}
		}
		for name, value := range doc {
			if text, is := value.(string); is && text != "" && confidential().MatchString(name) {
				doc[name] = redacted
				continue
			}
			doc[name] = withoutSecrets(value)
		}
	case []any:
		for i, value := range doc {
			doc[i] = withoutSecrets(value)
		}
	}
	return doc
}

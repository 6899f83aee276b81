package secret

import (
	"net/url"
	"testing"
)

func TestConfidential(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"https://vault.example.com:8200": true,
		"http://127.0.0.1:8200":          true,
		"http://[::1]:8200":              true,
		"http://localhost":               true,
		"http://vault.example.com:8200":  false,
		"http://10.0.0.1":                false,
		"http://127.0.0.1.example.com":   false,
		"http://0.0.0.0:8200":            false,
		"https://:8200":                  false,
		"vault:8200":                     false,
		"unix:///run/vault.sock":         false,
		"":                               false,
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := Confidential(u); got != want {
			t.Errorf("Confidential(%q) = %v, want %v", text, got, want)
		}
	}
}

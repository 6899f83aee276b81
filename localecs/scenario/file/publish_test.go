package file

import (
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

func TestPublishedPorts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"8080:web:80":              "127.0.0.1:8080:web:80",
		"127.0.0.2:8080:web-api:1": "127.0.0.2:8080:web-api:1",
		"[::1]:8080:web:80":        "[::1]:8080:web:80",
	} {
		p, err := ParsePublished(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		testkit.Equal(t, text, p.String(), want)
	}
	for text, want := range map[string]string{
		"":                    "want [ADDRESS:]PORT:NAME:PORT",
		"8080":                "want [ADDRESS:]PORT:NAME:PORT",
		"8080:80":             "want [ADDRESS:]PORT:NAME:PORT",
		"8080:web":            "want [ADDRESS:]PORT:NAME:PORT",
		"0:web:80":            "want [ADDRESS:]PORT:NAME:PORT",
		"8080:web:0":          "want [ADDRESS:]PORT:NAME:PORT",
		"8080:web:65536":      "want [ADDRESS:]PORT:NAME:PORT",
		"localhost:80:web:80": "want [ADDRESS:]PORT:NAME:PORT",
		"0.0.0.0:80:web:80":   "want a loopback address",
		"10.0.0.1:80:web:80":  "want a loopback address",
	} {
		_, err := ParsePublished(text)
		testkit.ErrorContains(t, err, want)
	}
}

// All mistakes are in one error, each with its place.
func TestPublishedPortsOfAScenario(t *testing.T) {
	t.Parallel()
	s := Default()
	s.Tasks, s.Services = map[string]Task{"web": {}}, map[string]Service{"api": {}}
	s.Publish = []string{"8080:web:80", "8081:api:80", "8080:api:81", "x", "9:none:1"}
	ports, err := s.PublishedPorts()
	testkit.Equal(t, "ports", len(ports), 2)
	for _, want := range []string{
		`publish[2]: "8080:api:81": 127.0.0.1:8080 leads to web already`, `publish[3]: "x": want`,
		`publish[4]: "9:none:1": no task or service is called "none"; known: api, web`,
	} {
		testkit.ErrorContains(t, err, want)
	}
}

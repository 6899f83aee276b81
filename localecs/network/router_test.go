package network

import (
	"io"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

func TestRouterLeadsFromANameToTasks(t *testing.T) {
	t.Parallel()
	f := newFabric(t, Options{Subnet: "10.42.0.0/24"})
	api, web := attach(t, f, "api"), attach(t, f, "web")
	serve(t, api, api.IP.String()+":8080", "api")
	r := f.NewRouter(hclog.NewNullLogger())
	defer r.Close()
	// answer returns what the task web reads from a name's port.
	answer := func(name, port string) (string, error) {
		ip, ok := f.Host(name)
		if !ok {
			return "", io.EOF
		}
		c, err := web.DialContext(t.Context(), "tcp", ip.String()+":"+port)
		if err != nil {
			return "", err
		}
		defer c.Close()
		text, err := io.ReadAll(c)
		return string(text), err
	}
	r.Route([]shapes.Route{
		{Name: "api", Port: 80, Targets: []string{api.IP.String() + ":8080"}},
		{Name: "api", Port: 81, Targets: []string{api.IP.String() + ":8080"}}, {Name: "none", Port: 80},
	})
	for _, port := range []string{"80", "81"} {
		testkit.Eventually(t, "an answer at "+port, func() bool {
			text, err := answer("api", port)
			return err == nil && text == "api"
		})
	}
	if text, err := answer("none", "80"); err == nil {
		t.Errorf("a name without tasks: got %q, want an error", text)
	}
	r.Route([]shapes.Route{{Name: "api", Port: 80, Targets: []string{api.IP.String() + ":8080"}}})
	testkit.Eventually(t, "the end of a route", func() bool {
		_, err := answer("api", "81")
		return err != nil
	})
	if _, err := answer("api", "80"); err != nil {
		t.Errorf("the other route: %v", err)
	}
}

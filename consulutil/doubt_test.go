package consulutil

import (
	"net/http"
	"testing"

	"github.com/hashicorp/consul/api"
)

// TestDoubtOfSilentFailOver: the second server has answered, and the first may carry the
// write out later.
func TestDoubtOfSilentFailOver(t *testing.T) {
	t.Parallel()
	good := answer(200, "true")
	for name, tc := range map[string]struct {
		servers []http.HandlerFunc
		want    bool
	}{
		"answered":      {[]http.HandlerFunc{good}, false},
		"not answered":  {[]http.HandlerFunc{freeze, good}, true},
		"broken":        {[]http.HandlerFunc{breakOff, good}, true},
		"not connected": {[]http.HandlerFunc{nil, good}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClient(t, Options{Servers: newFleet(t, false, tc.servers...).inOrder(t, ServersOptions{})})
			ctx, doubt := WithDoubt(t.Context())
			node := &api.CatalogRegistration{Node: "n", Address: "192.0.2.1"}
			_, err := c.Catalog().Register(node, (&api.WriteOptions{}).WithContext(ctx))
			if err != nil {
				t.Error(err)
			}
			if got := doubt.Load(); got != tc.want {
				t.Errorf("doubt %v, want %v", got, tc.want)
			}
		})
	}
}

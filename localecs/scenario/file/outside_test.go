package file

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

func TestOutsideAddresses(t *testing.T) {
	t.Parallel()
	s := Default()
	s.Outside = []string{"db:5432=127.0.0.1:5432", "API.example.com:443", "v6:1=[::1]:1", "db:5433=other.internal:5432"}
	got, err := s.OutsideAddresses()
	if err != nil {
		t.Fatal(err)
	}
	want := []Outside{{"db", 5432, "127.0.0.1:5432"}, {"api.example.com", 443, "API.example.com:443"},
		{"v6", 1, "[::1]:1"}, {"db", 5433, "other.internal:5432"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	s.Outside = append(s.Outside, "DB:5432", "x", "db:0", "db:99999", "10.0.0.1:80", "a b:80", "db:1=:80",
		"db:2=x:http", "imds:80=169.254.169.254:80")
	_, err = s.OutsideAddresses()
	for _, want := range []string{
		`outside[4]: "DB:5432": db:5432 is given twice`, `outside[5]: "x": want NAME:PORT`, `outside[6]: "db:0": want`,
		`outside[7]: "db:99999": want`, `outside[8]: "10.0.0.1:80": want`, `outside[9]: "a b:80": want`,
		`outside[10]: "db:1=:80": want`, `outside[11]: "db:2=x:http": want`,
		`outside[12]: "imds:80=169.254.169.254:80": 169.254.169.254 is a link-local address`,
	} {
		testkit.ErrorContains(t, err, want)
	}
}

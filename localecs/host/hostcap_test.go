package host

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestMissingCapsNamesAbsentCapabilities(t *testing.T) {
	t.Parallel()
	have := uint64(1)<<unix.CAP_NET_ADMIN | uint64(1)<<unix.CAP_CHOWN
	got := MissingCaps(have, NetAdmin(), SysAdmin(), Chown(), SysResource(), Kill())
	if diff := cmp.Diff([]string{"CAP_SYS_ADMIN", "CAP_SYS_RESOURCE", "CAP_KILL"}, got); diff != "" {
		t.Error(diff)
	}
	if got := MissingCaps(have, NetAdmin()); got != nil {
		t.Errorf("Missing = %v, want nothing", got)
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	wrapped := fmt.Errorf("netlink: %w", unix.EOPNOTSUPP)
	for _, tc := range []struct {
		name    string
		err     error
		missing bool
		want    string
	}{
		{"privilege", unix.EPERM, true, "add bridge: operation not permitted: the host lacks CAP_NET_ADMIN; use -network host"},
		{"kernel feature behind a wrap", wrapped, true, "add bridge: netlink: operation not supported: the host lacks CAP_NET_ADMIN; use -network host"},
		{"anything else keeps its own words", unix.EEXIST, false, "add bridge: file exists"},
	} {
		err := Explain("add bridge", "CAP_NET_ADMIN", "use -network host", tc.err)
		var missing *MissingError
		if errors.As(err, &missing) != tc.missing || err.Error() != tc.want {
			t.Errorf("%s: %q (missing %v), want %q (missing %v)", tc.name, err, missing != nil, tc.want, tc.missing)
		}
		if !errors.Is(err, tc.err) {
			t.Errorf("%s: the system's error is lost", tc.name)
		}
	}
	if Explain("x", "y", "z", nil) != nil {
		t.Error("no error became one")
	}
}

func TestCheckNamesTheCapability(t *testing.T) {
	t.Parallel()
	have, err := Effective()
	if err != nil {
		t.Fatal(err)
	}
	// No capability has the number 62.
	err = CheckCaps("start a container", "", Cap{"CAP_NONE_SUCH", 62})
	var missing *MissingError
	if !errors.As(err, &missing) || missing.Need != "CAP_NONE_SUCH (run as root)" {
		t.Errorf("error %v (have %x)", err, have)
	}
	if err := CheckCaps("nothing", ""); err != nil {
		t.Errorf("Check of nothing: %v", err)
	}
}

package setup

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// runSetup runs one setup in a separate process, which prints its error. Arguments:
// address, fixture.
func runSetup(args []string) int {
	client, err := consulutil.NewClient(
		consulutil.Options{Address: args[0], Token: testkit.ManagementToken, Timeout: time.Minute})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	state, err := fixture{args[1]}.state(Options{})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	_, err = (&Setup{Client: client, Wanted: state, Log: hclog.NewNullLogger()}).Ensure(context.Background())
	fmt.Println(err)
	return 0
}

// TestPausedHolderWritesNothing: a controller is stopped between two of its writes,
// until another one has had the lock. When it continues it sends no write.
func TestPausedHolderWritesNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	target, err := url.Parse("http://" + secured.Require(t).HTTPAddr)
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(target)
	forward.ErrorLog = hclog.NewNullLogger().StandardLogger(nil)
	var mu sync.Mutex
	var writes []string
	var once sync.Once
	inSetup, pause, paused := make(chan struct{}), make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			mu.Lock()
			writes = append(writes, r.URL.Path)
			mu.Unlock()
		}
		if r.URL.Path == "/v1/acl/policy" && r.Method == http.MethodPut {
			once.Do(func() { close(inSetup); <-pause; close(paused) })
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	p := testkit.StartProcess(t, testkit.ProcessOptions{}, testkit.SelfArgs("setup", server.URL, l.name)...)
	<-inSetup
	p.Signal(syscall.SIGSTOP)
	close(pause)
	<-paused
	mustEnsure(t, l.setup(t, management(t), Options{Cluster: cluster(2)}))
	mu.Lock()
	writes = nil
	mu.Unlock()
	p.Signal(syscall.SIGCONT)
	if line := p.Line(); !strings.Contains(line, errLost.Error()) {
		t.Errorf("ended with %q", line)
	}
	p.Wait()
	mu.Lock()
	defer mu.Unlock()
	if i := slices.IndexFunc(writes, func(path string) bool {
		return !strings.HasPrefix(path, "/v1/session/destroy/") && !strings.HasSuffix(path, "/lock") // the release
	}); i >= 0 {
		t.Errorf("wrote %s without the lock", writes[i])
	}
	if got, want := principalsOf(t, l.clientMethod()), []string{trusted(2, "consul-ecs/")}; !slices.Equal(got, want) {
		t.Errorf("trusts %q, want %q", got, want)
	}
}

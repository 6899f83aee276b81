package backend

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meshtask/consul-ecs/internal/secret"
)

// Neither grants nor secrets stay in memory much longer than they are good for.
func TestExpiredEntriesAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l LoginBackend
		for n := range 10 * fewest {
			l.grants.issue(Request{}, fmt.Sprint(n), time.Minute)
			l.remember(fmt.Sprint("grant-", n), Token{Secret: secret.New("x"), Accessor: fmt.Sprint(n),
				Expires: time.Now().Add(time.Minute)})
			<-time.After(time.Second)
		}
		if issued, made := len(l.grants.issued.all), len(l.made.all); issued > fewest || made > fewest {
			t.Errorf("%d grants and %d tokens are remembered", issued, made)
		}
		if _, known := l.known(fmt.Sprint(10*fewest - 1)); !known {
			t.Error("the last token is not known")
		}
	})
}

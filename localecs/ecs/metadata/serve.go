package metadata

import (
	"net"
	"net/http"
	"strings"
	"sync"
)

// Serve serves with the ECS agent's timeouts until close, which cuts the connections and returns when the listener is
// closed and no goroutine accepts any more.
func Serve(l net.Listener, h http.Handler) (close func() error) {
	server := &http.Server{Handler: h, ReadTimeout: Timeout, WriteTimeout: Timeout}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) }) // what ends it is close
	return func() error {
		err := server.Close()
		serving.Wait()
		return err
	}
}

// Host is a listener's address as the host of an http URL.
func Host(l net.Listener) string { return strings.TrimSuffix(l.Addr().String(), ":80") }

package registrar

import (
	"errors"
	"math/rand/v2"
	"net"
	"time"
)

// unreachable reports whether no connection was made.
func unreachable(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// around returns a random duration within 20 % of d.
func around(d time.Duration) time.Duration { return d*8/10 + rand.N(d*4/10+1) }

package scenario

import (
	"context"
	"time"
)

// asking is how often Until asks.
const asking = 20 * time.Millisecond

// Until asks again and again until something has come, or asking fails, or ctx
// has ended.
func Until(ctx context.Context, come func() (bool, error)) error {
	tick := time.NewTicker(asking)
	defer tick.Stop()
	for {
		if ok, err := come(); ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Clock is that of the steps that have a time. It begins when the first of them
// waits.
type Clock struct{ begun time.Time }

// Await waits for a step's time; nil is now.
func (c *Clock) Await(ctx context.Context, at *time.Duration) error {
	if at == nil {
		return nil
	}
	if c.begun.IsZero() {
		c.begun = time.Now()
	}
	select {
	case <-time.After(time.Until(c.begun.Add(*at))):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

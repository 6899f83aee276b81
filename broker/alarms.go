package broker

import (
	"maps"
	"sync"
	"time"
)

// alarms remembers which alarms were raised within alarmPause. It is safe for concurrent use.
type alarms struct {
	mu     sync.Mutex
	raised map[string]time.Time // by key
}

// raise reports whether the alarm of a key is to be raised, which it is once within alarmPause.
func (a *alarms) raise(key string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, raised := a.raised[key]; raised {
		return false
	}
	if a.raised == nil {
		a.raised = map[string]time.Time{}
	}
	a.raised[key] = time.Now()
	return true
}

// wasRaised reports whether the alarm of a key was raised.
func (a *alarms) wasRaised(key string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, raised := a.raised[key]
	return raised
}

// forget removes the alarms before alarmPause.
func (a *alarms) forget(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.raised, func(_ string, at time.Time) bool { return now.Sub(at) >= alarmPause })
}

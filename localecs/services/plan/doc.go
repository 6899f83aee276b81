// Package plan decides what a service does next: which tasks to start, which to
// stop, and how its deployments fare.
//
// Flow: 1. the ends and the health of tasks are counted, once each; 2. the
// circuit breaker looks at them; 3. tasks are started up to maximumPercent and
// stopped down to minimumHealthyPercent; 4. a deployment that has all its tasks
// is complete.
//
// Owns: the rules of rolling deployments, back-off, and the texts of events.
// Never does: read a clock, start or stop anything.
// Start reading at: Service.Reconcile.
package plan

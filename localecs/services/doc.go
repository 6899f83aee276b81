// Package services keeps the tasks of ECS services running: the calls of the
// ECS API about services, and the scheduler behind them.
//
// Flow: 1. a call changes what is wanted; 2. Run looks at every service when a
// task has changed, and each second for what makes no version, such as health;
// 3. package plan says what to start and stop; 4. the control plane does it.
//
// Owns: services, their deployments' settings, events, client tokens.
// Never does: decide how a rollout goes (plan), run a task (controlplane).
// Start reading at: Services.Run, then look.go.
package services

// Package account is the ECS of one AWS account on the wire: the control plane,
// the services, and the API in front of them, over whatever launches tasks.
//
// Flow: 1. Open makes all of it; 2. API answers calls, while Run of package
// services keeps their tasks running; 3. Close ends that.
//
// Owns: what belongs together whoever runs the tasks.
// Never does: listen, launch a task.
// Start reading at: Open.
package account

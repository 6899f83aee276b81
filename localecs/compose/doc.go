// Package compose turns task definitions into a docker compose file, and serves the endpoints of ECS to
// the containers of such a project.
//
// Flow: 1. NewFile makes the file: a service per task that holds its network, and one per
// container; 2. `localecs endpoints`, a service of the file, follows the engine: Watch calls back at
// each change; 3. a State makes tasks of the project's containers; 4. an Agent gives them
// credentials, answers metadata, STS, IAM and ECS, and stops a task whose essential container
// has ended.
//
// Owns: names of services, labels and addresses in the file; the
// translation of engine states into those of ECS.
// Never does: listen, or know what docker compose does with the file.
// Start reading at: NewFile; then Agent.Run and State.update.
package compose

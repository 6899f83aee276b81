// Package compose wires what localecs has for docker compose: the commands
// compose, endpoints and pause.
//
// Flow: 1. read flags, files and what the command was given of the environment; 2.
// build a compose file, or an agent; 3. write it, or run it until a signal.
//
// Owns: flags and help of these commands. Never does: know ECS or compose.
// Start reading at: Command and Endpoints.
package compose

// Package engine reads a docker compose project from a Docker engine.
//
// Flow: (1) Dial finds the engine, Own the project of the container that asks;
// (2) Containers are the project's as they are; (3) Watch calls back at each
// change, and tells who is asked to stop; (4) Stop and Stats are for one
// container.
//
// Owns: the words of the Engine API. Never does: know what they mean to ECS.
// Start reading at: Project.
package engine

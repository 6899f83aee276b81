// Package wish is what a scenario file wants of ECS besides single tasks: its
// services, and how the ECS API is.
//
// Flow: 1. the file is decoded into Service and API; 2. Problems tells what
// cannot be; 3. Input is a Service in the API's form.
//
// Owns: the keys of services and of the API.
// Never does: call anything.
// Start reading at: Service.
package wish

// Package wish is what a scenario file wants of ECS besides single tasks: its
// services, how the ECS API is, and what stands in for images.
//
// Flow: 1. the file is decoded into Service, API and Image; 2. Problems tells what
// cannot be; 3. Input is a Service in the API's form, Host an Image on this machine.
//
// Owns: the keys of services, of the API and of images.
// Never does: call anything.
// Start reading at: Service.
package wish

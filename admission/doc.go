// Package admission turns a plain ECS task definition into one of the mesh, and checks
// it.
//
// Flow: 1. Admit reads the document and its annotations, and decides whether it is to
// be injected; 2. mutators change it, each on the result of the one before:
// canonicalize, connect, expose-check, constraints; 3. validators read a copy: the rules of ECS, of
// the mesh, and of the time a stop takes; 4. all findings are returned at once, sorted.
//
// What the definition uses of Consul (use) and the rights that this takes (UseRules) are part
// of the result.
//
// Owns: the containers of the mesh in a definition, the codes, the kinds of uses and the
// table of their rights.
// Never does: I/O; it calls neither AWS nor Consul, and changes no value that is there
// except those that it owns.
// Start reading at: Admit, then connect.
package admission

// Package admission turns a plain ECS task definition into one of the mesh, checks it, and
// checks whether it would get the rights that it requires.
//
// Flow: 1. Admit reads the document and its annotations, docker labels and tags, and decides
// whether it is to be injected; 2. mutators change it, each on the result of the one before:
// canonicalize, connect, expose-check, constraints; 3. validators read a copy: the rules of
// ECS, of the mesh, and of the time a stop takes; 4. all findings are returned at once, with
// what the definition uses of Consul and the rights that this takes (useRules);
// 5. PermissionChecker asks the server, the rules of the operator's token, or both, whether
// the token allows them; 6. RoleChecker reads the task's role from IAM, and compares it with
// ECS, the auth method, and what the task needs at run time.
//
// Owns: the annotations, the containers of the mesh in a definition, the codes, the kinds of
// uses and the table of their rights.
// Never does: I/O outside of permission*.go and role*.go, which allow nothing unknown and
// change no role; change values that are there except those that it owns.
// Start reading at: Admit, connect, PermissionChecker.Check, RoleChecker.Check.
package admission

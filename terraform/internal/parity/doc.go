// Package parity compares modules/render with consul-ecs admit.
//
// Flow: (1) each file of testdata is a plain task definition with its mesh file; (2)
// package admission admits it; (3) terraform applies modules/render with the same input;
// (4) both results, with the defaults of ECS filled in, have to be equal in every field.
// Owns: the inputs. Never does: keep a copy of a result.
// Start reading at: TestRenderedTaskEqualsAdmittedTask.
package parity

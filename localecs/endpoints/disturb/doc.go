// Package disturb makes endpoints misbehave as faults say: slow, silent, failing,
// cut off, wrong, with another clock, without tags.
//
// Flow: 1. Begin adds a fault to those there are now, and its end takes it away;
// 2. a wrapped endpoint finds out at each request which of them strike it; 3. they
// strike in the order of Faults; 4. what the endpoint says of itself is left to it.
//
// Owns: the way an answer is late, missing, cut or replaced.
// Never does: know how long a fault lasts, word an endpoint's error.
// Start reading at: Faults, then serve.
package disturb

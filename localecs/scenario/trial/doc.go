// Package trial runs a scenario under a schedule of faults and has it judged.
//
// Flow: 1. WorldOf reads what the scenario's tasks are made of; 2. Script makes a
// scenario of it whose steps are the schedule's; 3. Trial.Run runs that with a
// recorder and judges the record; 4. Trial.Shrink runs it again, shorter.
//
// Owns: how a schedule becomes steps. Never does: decide what may be lost.
// Start reading at: Trial.
package trial

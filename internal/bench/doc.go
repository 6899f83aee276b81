// Command bench measures what consul-ecs costs a task, each figure next to a floor
// or a peer measured in the same run. Machines are shared and noisy, so the ratios
// count and not the times. Benchmarks of the controller and of localecs are beside
// them (subcommand, localecs/cluster, localecs/ecs/simulated); make bench runs all.
//
// Flow: 1. build consul-ecs and the floor programs; 2. for each figure start what it
// needs on loopback: a real Consul agent behind a counting proxy, real Envoys, task
// metadata and AWS from localecs/ecs; 3. run the real commands and take samples; 4.
// print a table of min, median and max.
//
// Owns: how a figure is measured. What version 0.6 needed and what we aim at stand
// beside each figure as plain text.
// Never does: pass or fail by a figure, use anything but loopback, leave a process
// behind. MB are 10^6 bytes.
// Start reading at: figures, then meshInitFigure.
package main

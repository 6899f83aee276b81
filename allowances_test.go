package consulecs_test

// allowances returns the violations of the rules about density that each package still has:
// upper bounds, to be lowered until the lists are empty.
func allowances() map[string]map[string]int {
	return map[string]map[string]int{
		"columns": {
			"aclrules": 81, "admission": 84, "bootstrap": 18, "broker": 4, "broker/backend": 8,
			"broker/receiver": 10, "clientagent": 2, "config": 138, "consulutil": 10, "controller/setup": 7,
			"entrypoint": 15, "internal/image": 3, "localecs/chaos": 1, "localecs/cluster": 177,
			"localecs/command": 385, "localecs/compose": 67, "localecs/docker": 61, "localecs/host": 37,
			"localecs/network": 37, "localecs/runtime": 106, "localecs/scenario": 2, "localecs/scenario/file": 4,
			"meshinit": 14, "registrar": 12, "subcommand": 93, "taskdef": 181, "workload": 15,
		},
		"condition": {
			"config":     2,
			"entrypoint": 2, "healthsync": 6, "internal/image": 1, "localecs/command": 80, "consulutil": 9,
			"meshinit": 7, "registrar": 4, "subcommand": 68,
		},
	}
}

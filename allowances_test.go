package consulecs_test

// allowances returns the violations of the rules about density that each package still has:
// upper bounds, to be lowered until the lists are empty.
func allowances() map[string]map[string]int {
	return map[string]map[string]int{
		"columns": {
			"aclrules": 220, "admission": 537, "awsutil": 8, "awsutil/awstest": 7, "bootstrap": 54, "broker": 7,
			"broker/backend": 8, "broker/receiver": 10, "clientagent": 4, "config": 254, "consulutil": 12,
			"controller/setup": 9, "entrypoint": 17, "images": 43, "internal/image": 29, "internal/retry": 3,
			"internal/size": 3, "internal/testkit/registry": 3, "localecs/chaos": 1, "localecs/cluster": 257,
			"localecs/command": 402, "localecs/compose": 84, "localecs/docker": 70, "localecs/host": 40,
			"localecs/network": 43, "localecs/runtime": 118, "localecs/scenario": 2, "localecs/scenario/file": 4,
			"meshinit": 17, "redirect": 3, "registrar": 13, "subcommand": 93, "taskdef": 495, "workload": 72,
		},
		"comment": {
			".": 4, "aclrules": 94, "admission": 95, "awsutil": 18, "awsutil/awstest": 12, "bootstrap": 24,
			"config": 18, "examples/token-broker/tokendemo": 3, "internal/bench": 22, "internal/cli": 8,
			"internal/image": 7, "internal/metrics": 4, "internal/retry": 4, "internal/secret": 7,
			"internal/size": 5, "internal/testkit": 13, "internal/testkit/arch": 9,
			"internal/testkit/dockerengine": 5, "internal/testkit/vault": 3, "internal/volume": 5,
			"localecs/cluster": 74, "localecs/command": 68, "localecs/compose": 17, "localecs/docker": 24,
			"localecs/host": 16, "localecs/network": 25, "localecs/runtime": 69, "redirect": 17, "relay": 6,
			"subcommand": 20, "supervise": 4, "taskdef": 37, "workload": 27,
		},
		"condition": {
			".": 6, "aclrules": 18, "admission": 23, "awsutil": 23, "awsutil/awstest": 3, "bootstrap": 4,
			"broker": 34, "broker/backend": 13, "broker/receiver": 9, "config": 6, "consulutil": 51,
			"controller": 35, "controller/setup": 21, "entrypoint": 4, "envoy": 4, "healthsync": 10,
			"internal/bench": 8, "internal/cli": 7, "internal/image": 8, "internal/metrics": 6, "internal/retry": 4,
			"internal/secret": 4, "internal/size": 3, "internal/volume": 4, "localecs/cluster": 73,
			"localecs/command": 95, "localecs/compose": 22, "localecs/docker": 10, "localecs/host": 12,
			"localecs/network": 9, "localecs/runtime": 23, "meshinit": 27, "registrar": 6, "relay": 3,
			"subcommand": 68, "supervise": 5, "taskdef": 11, "workload": 6,
		},
		"methods": {
			"admission.task": 159, "localecs/cluster.Cluster": 33, "localecs/cluster.Task": 45,
		},
	}
}

package host

import "os"

// A Role is work that this program does in a process that it has started itself, with the role's
// name as argv[0].
type Role struct {
	Name string
	// Run takes the arguments after argv[0] and returns the exit code.
	Run func(args []string) int
}

// Dispatch runs the role that this process was started for and exits with its code. In any other
// process it returns at once; in the child of Run it first ties this process to its parent. It
// comes first in main, and in TestMain of packages that start such processes. The order of roles
// is not important.
func Dispatch(roles ...Role) {
	for _, r := range append(roles, Role{argv0Waiting, wait}) {
		if os.Args[0] == r.Name {
			os.Exit(r.Run(os.Args[1:]))
		}
	}
	if Inside() {
		endWithParent()
	}
}

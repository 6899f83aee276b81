package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/meshtask/consul-ecs/localecs/scenario"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// job is one run of a scenario.
type job struct {
	plan  *scenario.Plan
	order string   // of stopping
	dir   *os.File // its state directory, claimed
}

// bothOrders is the -stop-order that runs each scenario twice.
const bothOrders = "both"

// jobs looks at everything that was given before it touches anything. Every
// mistake in any scenario is in the error.
func (f *runFlags) jobs(paths []string) (jobs []job, warnings []string, err error) {
	if len(paths) == 0 {
		return nil, nil, errors.New("want task definitions, or a scenario directory or file")
	}
	orders, err := f.orders()
	if err != nil {
		return nil, nil, err
	}
	values, err := f.vars.Found()
	if err != nil {
		return nil, nil, err
	}
	var errs []error
	named := map[string]string{}
	for _, path := range paths {
		scene, plan, more, err := f.load(path, values)
		warnings = append(warnings, more...)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if other, taken := named[scene.Name]; taken {
			errs = append(errs, fmt.Errorf("%s and %s are both named %s: one would overwrite the other's logs", other, path, scene.Name))
		}
		named[scene.Name] = path
		for _, order := range orders {
			if order == "" {
				order = scene.StopOrder
			}
			jobs = append(jobs, job{plan: plan, order: order})
		}
	}
	return jobs, warnings, errors.Join(errs...)
}

func (f *runFlags) load(path string, values map[string]string) (*file.Scenario, *scenario.Plan, []string, error) {
	scene, err := file.Load(path)
	if err != nil {
		return nil, nil, nil, Hint(path, err)
	}
	plan, warnings, err := scenario.Prepare(scene, values, f.network)
	if err == nil && f.docker == "" { // an engine may have other images
		warnings = append(warnings, plan.MissingImages()...)
	}
	return scene, plan, warnings, err
}

// orders are the stop orders to run each scenario with; "" is its own.
func (f *runFlags) orders() ([]string, error) {
	switch f.stopOrder {
	case "", file.StopReverse, file.StopAtOnce:
		return []string{f.stopOrder}, nil
	case bothOrders:
		return []string{file.StopReverse, file.StopAtOnce}, nil
	}
	return nil, fmt.Errorf("-stop-order: %q: want %s, %s or %s", f.stopOrder, file.StopReverse, file.StopAtOnce, bothOrders)
}

// claim opens each job's directory, or none. The logs of the last run stay until
// this one can begin.
func (f *runFlags) claim(jobs []job) error {
	for i, j := range jobs {
		name := j.plan.Name()
		if f.stopOrder == bothOrders {
			name += "-" + j.order
		}
		dir, err := openStateDir(filepath.Join(f.dir, name))
		if err != nil {
			closeAll(jobs)
			return err
		}
		jobs[i].dir = dir
	}
	return nil
}

func closeAll(jobs []job) {
	for _, j := range jobs {
		if j.dir != nil {
			j.dir.Close()
		}
	}
}

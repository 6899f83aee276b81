package broker

import (
	"context"
	"errors"
	"slices"
)

// recorder changes the records of tasks in the store and in the table.
type recorder struct {
	store Store
	table *taskTable
	// writer identifies the leadership in the records that it has written.
	writer string
	// stop ends the leadership.
	stop context.CancelCauseFunc
}

// save changes a task's record and writes it. When another broker has written it, the leadership
// ends.
func (k *recorder) save(ctx context.Context, e *entry, change func(*Record)) error {
	if err := e.acquire(ctx); err != nil {
		return err
	}
	defer e.release()
	return k.write(ctx, e, change)
}

// write does what save does, for a caller that has acquired the entry.
func (k *recorder) write(ctx context.Context, e *entry, change func(*Record)) error {
	err := k.tryWrite(ctx, e, change)
	if errors.Is(err, ErrStale) && e.unsure { // the write whose answer was lost has landed only now
		err = k.tryWrite(ctx, e, change)
	}
	if errors.Is(err, ErrStale) {
		k.stop(err)
	}
	return err
}

// tryWrite changes the record once.
func (k *recorder) tryWrite(ctx context.Context, e *entry, change func(*Record)) error {
	if e.unsure {
		if err := k.reread(ctx, e); err != nil {
			return err
		}
	}
	k.table.mu.Lock()
	next := e.record.Clone()
	k.table.mu.Unlock()
	change(&next)
	if slices.Equal(next.Tokens, e.record.Tokens) {
		return nil
	}
	next.Writer = k.writer
	var err error
	if next.Version, err = k.store.Save(ctx, next); err != nil {
		e.unsure = e.unsure || !errors.Is(err, ErrStale)
		return err
	}
	e.unsure = false
	k.table.setRecord(e, next)
	return nil
}

// reread takes over what is stored if this leadership has written it: then a write has landed
// whose answer was lost. A record that is gone has no writer; what is saved in its place is
// saved under the lock only.
func (k *recorder) reread(ctx context.Context, e *entry) error {
	stored, err := k.store.Read(ctx, e.record.TaskARN)
	switch {
	case err != nil:
		return err
	case stored.Version == e.record.Version:
		return nil
	case stored.Version != 0 && stored.Writer != k.writer:
		return ErrStale
	}
	k.table.setRecord(e, stored)
	return nil
}

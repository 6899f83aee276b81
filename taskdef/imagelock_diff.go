package taskdef

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
)

// ImageChange is a difference between two locks.
type ImageChange struct {
	// Image is the reference, as the definitions write it.
	Image string `json:"image"`
	// Platform is empty for what is about the image as a whole.
	Platform string `json:"platform,omitempty"`
	// Field is image, digest, platform or a key of a platform's configuration, such as
	// entrypoint.
	Field string `json:"field"`
	// Before and After are the values, nil where there is none. Those of the field image are
	// digests, and those of platform the digest of the platform's manifest.
	Before any `json:"before"`
	After  any `json:"after"`
}

// DiffImages returns what differs between two locks, sorted by image and platform.
func DiffImages(before, after *ImageLock) []ImageChange {
	var changes []ImageChange
	for _, reference := range keysOf(before.Images, after.Images) {
		old, had := before.Images[reference]
		image, has := after.Images[reference]
		switch {
		case !had:
			changes = append(changes, ImageChange{Image: reference, Field: "image", After: image.Digest})
		case !has:
			changes = append(changes, ImageChange{Image: reference, Field: "image", Before: old.Digest})
		default:
			changes = append(changes, diffImage(reference, old, image)...)
		}
	}
	return changes
}

// diffImage returns what differs between two states of an image.
func diffImage(reference string, before, after LockedImage) []ImageChange {
	var changes []ImageChange
	if before.Digest != after.Digest {
		changes = append(changes,
			ImageChange{Image: reference, Field: "digest", Before: before.Digest, After: after.Digest})
	}
	for _, platform := range keysOf(before.Platforms, after.Platforms) {
		old, had := before.Platforms[platform]
		config, has := after.Platforms[platform]
		change := ImageChange{Image: reference, Platform: platform, Field: "platform"}
		switch {
		case !had:
			change.After = config.Digest
			changes = append(changes, change)
		case !has:
			change.Before = old.Digest
			changes = append(changes, change)
		default:
			isImage := before.Digest == old.Digest && after.Digest == config.Digest // without an index
			changes = append(changes, diffConfig(change, old, config, isImage)...)
		}
	}
	return changes
}

// diffConfig returns what differs between two configurations. The digest of a platform that
// is the image itself is no further change.
func diffConfig(of ImageChange, before, after ImageConfig, isImage bool) []ImageChange {
	var changes []ImageChange
	for _, f := range []struct {
		name          string
		before, after any
	}{
		{"digest", before.Digest, after.Digest},
		{"entrypoint", before.Entrypoint, after.Entrypoint},
		{"cmd", before.Cmd, after.Cmd},
		{"user", before.User, after.User},
		{"stopSignal", before.StopSignal, after.StopSignal},
		{"workingDir", before.WorkingDir, after.WorkingDir},
		{"volumes", before.Volumes, after.Volumes},
		{"healthcheck", before.Healthcheck, after.Healthcheck},
	} {
		of.Field, of.Before, of.After = f.name, present(f.before), present(f.after)
		if !reflect.DeepEqual(of.Before, of.After) && (f.name != "digest" || !isImage) {
			changes = append(changes, of)
		}
	}
	return changes
}

// present returns nil for a value that is absent in a lock.
func present(value any) any {
	v := reflect.ValueOf(value)
	if v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0 {
		return nil
	}
	return value
}

// keysOf returns the keys of both maps, sorted, each once.
func keysOf[V any](a, b map[string]V) []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.SortFunc(keys, cmp.Compare)
	return slices.Compact(keys)
}

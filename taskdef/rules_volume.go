package taskdef

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// volumeRules are about the volumes of the task and their mounts.
var volumeRules = []Rule{
	{Code: "volume-name", Members: []string{"volumes[*].name"}, Text: "volume.name contains invalid characters.",
		Fix: "rename '{name}': use " + nameFormat, task: func(d *subject, report report) {
			for i, v := range d.Volumes {
				if !validCharacters(v.Name) {
					report(fmt.Sprintf("volumes[%d].name", i), v.Name)
				}
			}
		}},
	{Code: "volume-name-length", Members: []string{"volumes[*].name"},
		Text:    "Volume name '{name}' must have 1 to 255 characters.",
		Wording: Ours, Fix: "rename it", task: func(d *subject, report report) {
			for i, v := range d.Volumes {
				if v.Name == "" || len(v.Name) > maxName {
					report(fmt.Sprintf("volumes[%d].name", i), v.Name)
				}
			}
		}},
	{Code: "volume-name-unique", Members: []string{"volumes[*].name"}, Text: "Volume name '{name}' is used twice.",
		Wording: Ours, Fix: "rename one of them", task: func(d *subject, report report) {
			taken := map[string]bool{}
			for i, v := range d.Volumes {
				if taken[v.Name] {
					report(fmt.Sprintf("volumes[%d].name", i), v.Name)
				}
				taken[v.Name] = true
			}
		}},
	{Code: "volume-unknown", Members: []string{".mountPoints[*].sourceVolume", "volumes[*].name"},
		Text: "Unknown volume '{name}'.",
		Fix:  "declare it in volumes, or correct sourceVolume", each: func(d *subject, c *Container, report report) {
			for i, m := range c.MountPoints {
				if !slices.ContainsFunc(d.Volumes, func(v Volume) bool { return v.Name == m.SourceVolume }) {
					report(fmt.Sprintf(".mountPoints[%d].sourceVolume", i), cmp.Or(m.SourceVolume, "null"))
				}
			}
		}},
	{Code: "volume-unused", Text: "Volumes [{names}] are not referenced by any of the containers",
		Members: []string{"volumes[*].name", "volumes[*].configuredAtLaunch",
			"containerDefinitions[*].mountPoints[*].sourceVolume"},
		Fix: "mount the volume in a container: it is configured at launch", task: checkVolumesAtLaunch},
	{Code: "volume-launch-count", Text: "Task definition has {count} volumes configured at launch, at most 1 " +
		"is allowed.", Wording: Ours,
		Members: []string{"volumes[*].configuredAtLaunch"}, Fix: "configure the others in volumes",
		task: func(d *subject, report report) {
			n := 0
			for _, v := range d.Volumes {
				if isTrue(v.ConfiguredAtLaunch) {
					n++
				}
			}
			if n > 1 {
				report("volumes", n)
			}
		}},
	{Code: "volume-type", Text: "When the volume parameter is specified, only one volume configuration type " +
		"should be used.",
		Members: []string{"volumes[*].host.sourcePath", "volumes[*].configuredAtLaunch",
			"volumes[*].dockerVolumeConfiguration", "volumes[*].efsVolumeConfiguration",
			"volumes[*].s3filesVolumeConfiguration", "volumes[*].fsxWindowsFileServerVolumeConfiguration"},
		Fix: "remove all but one", task: func(d *subject, report report) {
			for i, v := range d.Volumes {
				if v.types() > 1 {
					report(fmt.Sprintf("volumes[%d]", i))
				}
			}
		}},
	{Code: "volume-source-path", Members: []string{"volumes[*].host.sourcePath"},
		Text: "host.sourcePath should not be blank.",
		Fix:  "write a path of the host, or leave sourcePath out for an empty directory of the task",
		task: func(d *subject, report report) {
			for i := range d.Volumes {
				if path := fmt.Sprintf("volumes[%d].host.sourcePath", i); d.blank(path) {
					report(path)
				}
			}
		}},
	{Code: "volume-autoprovision", Text: "When 'scope' parameter is 'task', 'autoprovision' must either not be " +
		"specified or set to 'True'.",
		Members: []string{"volumes[*].dockerVolumeConfiguration.scope",
			"volumes[*].dockerVolumeConfiguration.autoprovision"},
		Fix: "remove autoprovision, or set scope to shared", task: func(d *subject, report report) {
			for i, v := range d.Volumes {
				if v.Docker != nil && v.Docker.Scope == "task" && v.Docker.Autoprovision != nil &&
					!*v.Docker.Autoprovision {
					report(fmt.Sprintf("volumes[%d].dockerVolumeConfiguration.autoprovision", i))
				}
			}
		}},
	{Code: "efs-root-directory", Text: `When using an EFS access point, the root directory must either be set to "/" ` +
		`or be omitted.`,
		Members: []string{"volumes[*].efsVolumeConfiguration.rootDirectory",
			"volumes[*].efsVolumeConfiguration.authorizationConfig.accessPointId"},
		Fix: "remove rootDirectory: the access point has its own",
		task: eachEFS(".rootDirectory", func(v *EFSVolume) bool {
			return v.AuthorizationConfig != nil && v.AuthorizationConfig.AccessPointID != "" && v.RootDirectory != "" &&
				v.RootDirectory != "/"
		})},
	{Code: "efs-iam-encryption", Text: "EFS IAM authorization requires TransitEncryption to be enabled.",
		Members: []string{"volumes[*].efsVolumeConfiguration.transitEncryption",
			"volumes[*].efsVolumeConfiguration.authorizationConfig.iam"},
		Fix: "set transitEncryption to ENABLED", task: eachEFS(".transitEncryption", func(v *EFSVolume) bool {
			return v.AuthorizationConfig != nil && v.AuthorizationConfig.IAM == enabled &&
				v.TransitEncryption != enabled
		})},
	{Code: "efs-access-point-encryption", Text: "EFS IAM access point requires TransitEncryption to be enabled.",
		Wording: Partial,
		Members: []string{"volumes[*].efsVolumeConfiguration.transitEncryption",
			"volumes[*].efsVolumeConfiguration.authorizationConfig.accessPointId",
			"volumes[*].efsVolumeConfiguration.authorizationConfig.iam"},
		Fix: "set transitEncryption to ENABLED", task: eachEFS(".transitEncryption", func(v *EFSVolume) bool {
			a := v.AuthorizationConfig // with IAM, it is efs-iam-encryption
			return a != nil && a.AccessPointID != "" && a.IAM != enabled && v.TransitEncryption != enabled
		})},
	{Code: "efs-port-encryption", Text: "TransitEncryptionPort requires that TransitEncryption is enabled.",
		Members: []string{"volumes[*].efsVolumeConfiguration.transitEncryption",
			"volumes[*].efsVolumeConfiguration.transitEncryptionPort"},
		Fix: "set transitEncryption to ENABLED", task: eachEFS(".transitEncryptionPort", func(v *EFSVolume) bool {
			return v.TransitEncryptionPort != nil && v.TransitEncryption != enabled
		})},
	{Code: "efs-port", Severity: Warn, Members: []string{"volumes[*].efsVolumeConfiguration.transitEncryptionPort"},
		Text: "transitEncryptionPort is no port: the volume cannot be mounted.", Wording: Ours,
		Fix: "take 1 to 65535, or remove it",
		task: eachEFS(".transitEncryptionPort",
			func(v *EFSVolume) bool { return outside(v.TransitEncryptionPort, 0, maxPort) })},
}

const enabled = "ENABLED"

// types returns how many kinds of volume it has the configuration of.
func (v *Volume) types() int {
	n := 0
	for _, given := range []bool{
		v.Host != nil && v.Host.SourcePath != "", isTrue(v.ConfiguredAtLaunch), v.Docker != nil, v.EFS != nil,
		v.S3Files != nil, v.FSxWindows != nil,
	} {
		if given {
			n++
		}
	}
	return n
}

func checkVolumesAtLaunch(d *subject, report report) {
	var unused []string
	path := ""
	for i, v := range d.Volumes {
		mounted := func(c Container) bool {
			return slices.ContainsFunc(c.MountPoints, func(m MountPoint) bool { return m.SourceVolume == v.Name })
		}
		if isTrue(v.ConfiguredAtLaunch) && !slices.ContainsFunc(d.ContainerDefinitions, mounted) {
			unused = append(unused, v.Name)
			path = fmt.Sprintf("volumes[%d]", i)
		}
	}
	if len(unused) > 0 {
		report(path, strings.Join(unused, ", "))
	}
}

// eachEFS reports a member of every EFS volume that is wrong.
func eachEFS(member string, wrong func(v *EFSVolume) bool) func(*subject, report) {
	return func(d *subject, report report) {
		for i, v := range d.Volumes {
			if v.EFS != nil && wrong(v.EFS) {
				report(fmt.Sprintf("volumes[%d].efsVolumeConfiguration%s", i, member))
			}
		}
	}
}

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// release writes the files of a release into the directory release of dist.
func (o *options) release(ctx context.Context, archs []string) error {
	var programs []program
	for _, arch := range archs {
		consulECS, err := o.read(ctx, arch, "consul-ecs", certificatesPackage)
		if err != nil {
			return err
		}
		localecs, err := o.read(ctx, arch, "localecs")
		if err != nil {
			return err
		}
		programs = append(programs, consulECS, localecs)
	}
	files, err := o.releaseFiles(programs)
	if err != nil {
		return err
	}
	for name, data := range files {
		if err := write(filepath.Join(o.dist, "release", name), data); err != nil {
			return err
		}
	}
	return nil
}

// releaseFiles returns the files of a release by name.
func (o *options) releaseFiles(programs []program) (map[string][]byte, error) {
	files := map[string][]byte{}
	var subjects []resource
	var images []v1.Image
	byArch := map[string][]program{}
	for _, p := range programs {
		byArch[p.arch()] = append(byArch[p.arch()], p)
		subjects = append(subjects, resource{Name: p.platform(), Digest: digest(p.data)})
		var err error
		if files[p.name+"-linux-"+p.arch()+".cdx.json"], err = o.sbom(p); err != nil {
			return nil, err
		}
		if p.name == "consul-ecs" {
			_, img, err := o.container(p)
			if err != nil {
				return nil, err
			}
			images = append(images, img)
		}
	}
	for arch, all := range byArch {
		name := "consul-ecs-linux-" + arch
		var err error
		if files[name+".tar.gz"], err = o.bundle(name+"/", all); err != nil {
			return nil, err
		}
	}
	index, err := o.index(images)
	if err != nil {
		return nil, err
	}
	if files["consul-ecs-image.tar"], err = o.archive(index, o.version, images); err != nil {
		return nil, err
	}
	if subjects, err = o.addImages(subjects, index); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		subjects = append(subjects, resource{Name: name, Digest: digest(files[name])})
	}
	if files["consul-ecs.provenance.json"], err = o.provenance(subjects, programs); err != nil {
		return nil, err
	}
	var sums strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&sums, "%s  %s\n", digest(files[name])["sha256"], name)
	}
	files["SHA256SUMS"] = []byte(sums.String())
	return files, nil
}

// bundle returns a compressed tar file with the programs and the licences of all that they are made from, below dir.
func (o *options) bundle(dir string, programs []program) ([]byte, error) {
	var files []entry
	modules := map[string]*module{}
	for _, p := range programs {
		files = append(files, entry{path: dir + p.name, mode: 0o755, data: p.data})
		for _, m := range p.modules {
			modules[m.path] = m
		}
	}
	files = append(files, licenseFiles(dir+"licenses/", sorted(modules))...)
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if err := writeTar(z, files, o.created); err != nil {
		return nil, err
	}
	err = z.Close()
	return b.Bytes(), err
}

// addImages adds the index, by which all architectures are pulled, and what it lists.
func (o *options) addImages(subjects []resource, index v1.ImageIndex) ([]resource, error) {
	hash, err := index.Digest()
	if err != nil {
		return nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	subjects = append(subjects, resource{
		Name: o.name + ":" + o.version, Digest: map[string]string{hash.Algorithm: hash.Hex},
	})
	for _, m := range manifest.Manifests {
		digest := map[string]string{m.Digest.Algorithm: m.Digest.Hex}
		subjects = append(subjects, resource{Name: o.name + ":" + o.tag(m.Platform.Architecture), Digest: digest})
	}
	return subjects, nil
}

// digest returns the digest of data by its algorithm, as provenance has it.
func digest(data []byte) map[string]string {
	sum := sha256.Sum256(data)
	return map[string]string{"sha256": hex.EncodeToString(sum[:])}
}

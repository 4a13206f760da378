// helm-render renders a Helm chart and compares objects. Test machines cannot download Helm, so this program
// uses what Helm is built on: Go's text/template and sprig, from Debian, plus the few functions that Helm adds
// (helm.sh/helm/v3/pkg/engine). It knows no subcharts and lookups.
//
//	helm-render template [-f VALUES.yaml]... [-n NAMESPACE] [-kube-version VERSION] [-hooks] CHART
//	helm-render diff [-without KIND]... A.yaml B.yaml
//
// Built by hack/chart-test.sh without modules: GO111MODULE=off GOPATH=/usr/share/gocode go build.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "helm-render:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("usage: helm-render template|diff ...")
	}
	switch args[0] {
	case "template":
		return templateCommand(args[1:])
	case "diff":
		return diffCommand(args[1:])
	}
	return fmt.Errorf("unknown command %q", args[0])
}

// --- template ---

type values = map[string]interface{}

type list []string

func (l *list) String() string     { return strings.Join(*l, ",") }
func (l *list) Set(s string) error { *l = append(*l, s); return nil }

func templateCommand(args []string) error {
	flags := flag.NewFlagSet("template", flag.ContinueOnError)
	var files list
	flags.Var(&files, "f", "values file")
	namespace := flags.String("n", "statusgate-system", "namespace")
	version := flags.String("kube-version", "v1.30.0", "version of Kubernetes")
	hooks := flags.Bool("hooks", false, "render the hooks, and not what an installation creates")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("name one chart")
	}
	text, err := render(flags.Arg(0), files, *namespace, *version)
	if err != nil {
		return err
	}
	for _, document := range strings.Split(text, "\n---\n") {
		if strings.Contains(document, "helm.sh/hook:") == *hooks {
			fmt.Printf("---\n%s\n", strings.TrimPrefix(strings.TrimSpace(document), "---\n"))
		}
	}
	return nil
}

func render(chart string, valueFiles []string, namespace, version string) (string, error) {
	meta, err := readYAML(filepath.Join(chart, "Chart.yaml"))
	if err != nil {
		return "", err
	}
	all, err := readYAML(filepath.Join(chart, "values.yaml"))
	if err != nil {
		return "", err
	}
	for _, file := range valueFiles {
		more, err := readYAML(file)
		if err != nil {
			return "", err
		}
		all = merge(all, more)
	}
	content, err := readFiles(chart)
	if err != nil {
		return "", err
	}
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	top := values{
		"Values": all,
		// Helm makes the members of Chart.yaml Go fields.
		"Chart":   values{"Name": meta["name"], "Version": meta["version"], "AppVersion": meta["appVersion"]},
		"Release": values{"Name": "statusgate", "Namespace": namespace, "Service": "Helm", "IsInstall": true, "IsUpgrade": false, "Revision": 1},
		"Capabilities": values{
			"KubeVersion": values{"Version": version, "GitVersion": version, "Major": parts[0], "Minor": parts[1]},
		},
		"Files": content,
	}

	root := template.New("chart").Option("missingkey=zero")
	root.Funcs(functions(root))
	var names []string
	for name, text := range content {
		if strings.HasPrefix(name, "templates/") {
			if _, err := root.New(name).Parse(string(text)); err != nil {
				return "", err
			}
			names = append(names, name)
		}
	}
	sort.Strings(names)
	var out strings.Builder
	for _, name := range names {
		if strings.HasPrefix(filepath.Base(name), "_") {
			continue
		}
		top["Template"] = values{"Name": name, "BasePath": "templates"}
		var text bytes.Buffer
		if err := root.ExecuteTemplate(&text, name, top); err != nil {
			return "", err
		}
		// Helm does the same.
		rendered := strings.ReplaceAll(text.String(), "<no value>", "")
		if strings.HasSuffix(name, ".txt") || strings.TrimSpace(rendered) == "" {
			continue
		}
		fmt.Fprintf(&out, "---\n# Source: %s\n%s\n", name, strings.TrimPrefix(strings.TrimSpace(rendered), "---\n"))
	}
	return out.String(), nil
}

// functions are those of sprig, without those that read the environment, and those that Helm adds.
func functions(root *template.Template) template.FuncMap {
	all := sprig.TxtFuncMap()
	delete(all, "env")
	delete(all, "expandenv")
	include := func(name string, data interface{}) (string, error) {
		var text strings.Builder
		err := root.ExecuteTemplate(&text, name, data)
		return text.String(), err
	}
	helm := template.FuncMap{
		"include": include,
		"tpl": func(text string, data interface{}) (string, error) {
			clone, err := root.Clone()
			if err != nil {
				return "", err
			}
			parsed, err := clone.New("tpl").Parse(text)
			if err != nil {
				return "", err
			}
			var out strings.Builder
			err = parsed.Execute(&out, data)
			return out.String(), err
		},
		"required": func(message string, value interface{}) (interface{}, error) {
			if text, isText := value.(string); value == nil || isText && text == "" {
				return nil, errors.New(message)
			}
			return value, nil
		},
		"toYaml": func(value interface{}) (string, error) {
			text, err := yaml.Marshal(value)
			return strings.TrimSuffix(string(text), "\n"), err
		},
		"toJson": func(value interface{}) (string, error) {
			text, err := json.Marshal(value)
			return string(text), err
		},
		"fromYaml": func(text string) (values, error) {
			read := values{}
			err := yaml.Unmarshal([]byte(text), &read)
			return read, err
		},
		"lookup": func(...string) values { return values{} },
	}
	for name, function := range helm {
		all[name] = function
	}
	return all
}

// files are the files of a chart, by path.
type files map[string][]byte

func (f files) Get(name string) string { return string(f[name]) }

// Glob returns the files with matching paths.
func (f files) Glob(pattern string) files {
	found := files{}
	for name, text := range f {
		if matches, _ := filepath.Match(pattern, name); matches {
			found[name] = text
		}
	}
	return found
}

func readFiles(chart string) (files, error) {
	found := files{}
	err := filepath.Walk(chart, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		name, err := filepath.Rel(chart, path)
		if err == nil {
			found[name], err = os.ReadFile(path)
		}
		return err
	})
	return found, err
}

func readYAML(path string) (values, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	read := values{}
	if err := yaml.Unmarshal(text, &read); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return read, nil
}

// merge combines objects like Helm: a null removes the default.
func merge(base, more values) values {
	for name, value := range more {
		inner, isObject := value.(values)
		old, wasObject := base[name].(values)
		switch {
		case value == nil:
			delete(base, name)
		case isObject && wasObject:
			base[name] = merge(old, inner)
		default:
			base[name] = value
		}
	}
	return base
}

// --- diff ---

func diffCommand(args []string) error {
	flags := flag.NewFlagSet("diff", flag.ContinueOnError)
	var without list
	flags.Var(&without, "without", "a kind to leave out")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 2 {
		return errors.New("name two files")
	}
	args = flags.Args()
	var sides [2]map[string]interface{}
	for i, path := range args {
		objects, err := readObjects(path, without)
		if err != nil {
			return err
		}
		sides[i] = objects
	}
	names := map[string]bool{}
	for _, side := range sides {
		for name := range side {
			names[name] = true
		}
	}
	var different []string
	for name := range names {
		if !reflect.DeepEqual(sides[0][name], sides[1][name]) {
			different = append(different, differences(name, sides[0][name], sides[1][name])...)
		}
	}
	if len(different) > 0 {
		sort.Strings(different)
		return fmt.Errorf("%s and %s differ:\n%s", args[0], args[1], strings.Join(different, "\n"))
	}
	return nil
}

// differences names the values that are not equal.
func differences(at string, a, b interface{}) []string {
	left, isLeft := a.(values)
	right, isRight := b.(values)
	if !isLeft || !isRight {
		if reflect.DeepEqual(a, b) {
			return nil
		}
		text := func(value interface{}) string { text, _ := json.Marshal(value); return string(text) }
		return []string{fmt.Sprintf("%s: %s, %s", at, text(a), text(b))}
	}
	var found []string
	for name := range left {
		found = append(found, differences(at+"/"+name, left[name], right[name])...)
	}
	for name := range right {
		if _, known := left[name]; !known {
			found = append(found, differences(at+"/"+name, nil, right[name])...)
		}
	}
	return found
}

// readObjects reads the objects of a stream. Two with the same name are an error. It leaves out what only a
// chart has: the annotation that keeps CRDs.
func readObjects(path string, without []string) (map[string]interface{}, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	objects := map[string]interface{}{}
	for _, document := range strings.Split("\n"+string(text), "\n---\n") {
		var object values
		if err := yaml.UnmarshalStrict([]byte(document), &object); err != nil {
			return nil, fmt.Errorf("%s: %w in\n%s", path, err, document)
		}
		if object == nil {
			continue
		}
		leftOut := false
		for _, kind := range without {
			leftOut = leftOut || object["kind"] == kind
		}
		if leftOut {
			continue
		}
		metadata, _ := object["metadata"].(values)
		if annotations, _ := metadata["annotations"].(values); annotations != nil {
			delete(annotations, "helm.sh/resource-policy")
			if len(annotations) == 0 {
				delete(metadata, "annotations")
			}
		}
		name := fmt.Sprintf("%v %v/%v", object["kind"], metadata["namespace"], metadata["name"])
		if _, twice := objects[name]; twice {
			return nil, fmt.Errorf("%s: %s twice", path, name)
		}
		objects[name] = object
	}
	return objects, nil
}

package cli

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// prefixOf returns the prefix of the names of an enum's values, such as JOB_STATE_.
func prefixOf(values protoreflect.EnumValueDescriptors) string {
	return strings.TrimSuffix(string(values.ByNumber(0).Name()), "UNSPECIFIED")
}

// Word returns the name of an enum's value in flags, tables and JSON, such as "running".
func Word(e protoreflect.Enum) string {
	values := e.Descriptor().Values()
	v := values.ByNumber(e.Number())
	if v == nil {
		return "unknown"
	}
	return strings.ToLower(strings.TrimPrefix(string(v.Name()), prefixOf(values)))
}

// EnumWords returns the names of an enum's values in order, without the unspecified one.
func EnumWords[E protoreflect.Enum]() (words []string) {
	var e E
	for i, values := 1, e.Descriptor().Values(); i < values.Len(); i++ {
		words = append(words, strings.ToLower(strings.TrimPrefix(string(values.Get(i).Name()), prefixOf(values))))
	}
	return words
}

// ParseEnum returns the values of an enum that a flag names.
func ParseEnum[E interface {
	~int32
	protoreflect.Enum
}](flag string, words []string) (list []E, err error) {
	var e E
	values := e.Descriptor().Values()
	for _, word := range words {
		v := values.ByName(protoreflect.Name(prefixOf(values) + strings.ToUpper(word)))
		if v == nil || v.Number() == 0 {
			return nil, Invalid("write one of "+strings.Join(EnumWords[E](), ", "), "--%s %q", flag, word)
		}
		list = append(list, E(v.Number()))
	}
	return list, nil
}

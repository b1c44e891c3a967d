// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

// Package chart holds the Helm chart and the examples to their word, without a
// cluster.
//
// Every file in the chart's ci/ folder is linted and rendered by helm. The text is
// compared with the rendered examples, each object is decoded strictly into the
// types of its API, names that refer to each other are looked up, and the pod is
// run: the built Collector in the image's file system, with the pod's arguments,
// environment, files, volumes and user, until its health page answers. Pods that
// discover engines get an API server which knows the rendered roles and a pod that
// the simulated engine plays.
package chart

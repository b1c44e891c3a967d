// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

// Package pub is the publishing side of ZMQ PUB/SUB, as much of it as an FPM
// publisher needs: one bound endpoint, messages of three frames with an empty
// topic.
//
//	Publish ──▶ queue a subscriber (1000, drops the newest) ──▶ writer ──▶ conn
//	                                       PONG ◀── PING ◀── reader ◀───────┘
//
// The handshake is go-zeromq's; its Socket is not used, because that drops and
// closes unlike libzmq. Frames after the handshake (ZMTP 3.0, 23/ZMTP) are read
// and written here, with a bound on what a subscriber may send.
package pub

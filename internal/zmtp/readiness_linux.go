// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"errors"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// readiness tells to which of many sockets something came, when it is asked (an epoll file on which nobody sleeps, each
// arrival told once). A second epoll file watches the first, for one event at a time, and lies in the runtime's poller:
// that is woken only by the first arrival of a wait, not by each.
type readiness struct {
	sockets int
	first   *os.File
	raw     syscall.RawConn // of first
	events  []unix.EpollEvent
}

// arrival says that something came to a socket; ended, that the peer closed its side, that the connection failed, or that
// there are urgent bytes: a read may not empty the socket then.
type arrival struct {
	fd    int
	ended bool
}

// eventsAtOnce is how many arrivals one system call tells of.
const eventsAtOnce = 128

func openReadiness() (*readiness, error) {
	sockets, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	r := &readiness{sockets: sockets, events: make([]unix.EpollEvent, eventsAtOnce)}
	if err := r.openFirst(); err != nil {
		_ = unix.Close(sockets)
		return nil, err
	}
	return r, nil
}

func (r *readiness) openFirst() error {
	first, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	if err := errors.Join(
		unix.SetNonblock(first, true), // or the runtime would not poll it
		unix.EpollCtl(first, unix.EPOLL_CTL_ADD, r.sockets, &unix.EpollEvent{}),
	); err != nil {
		_ = unix.Close(first)
		return err
	}
	r.first = os.NewFile(uintptr(first), "epoll")
	if r.raw, err = r.first.SyscallConn(); err == nil {
		// The calls fail where a kernel or a sandbox does not know them, the deadline where the runtime does not poll the file.
		_, waits := arrived(r.sockets, r.events)
		polled := r.first.SetReadDeadline(time.Time{})
		err = errors.Join(waits, polled, receives(r.sockets))
	}
	if err != nil {
		r.first.Close()
	}
	return err
}

// receives tells whether readSocket can be used, of a file that is no socket.
func receives(file int) error {
	if _, err := readSocket(file, nil); !errors.Is(err, unix.ENOTSOCK) {
		return os.NewSyscallError("recvfrom", err)
	}
	return nil
}

// close frees the files. Nobody waits any more.
func (r *readiness) close() {
	r.first.Close()
	_ = unix.Close(r.sockets)
}

func (r *readiness) add(fd int) error {
	e := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLPRI | unix.EPOLLRDHUP | unix.EPOLLET, Fd: int32(fd)}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(r.sockets, unix.EPOLL_CTL_ADD, fd, &e))
}

func (r *readiness) remove(fd int) { _ = unix.EpollCtl(r.sockets, unix.EPOLL_CTL_DEL, fd, nil) }

// wait returns when something has come to a socket that appendArrivals has not told of, and after interrupt.
func (r *readiness) wait() error {
	if err := r.watch(unix.EPOLLIN | unix.EPOLLONESHOT); err != nil {
		return err
	}
	var failed error
	err := r.raw.Read(func(first uintptr) (done bool) {
		done, failed = came(first)
		return done
	})
	if failed != nil {
		return failed
	}
	if errors.Is(err, os.ErrDeadlineExceeded) { // interrupted: still watching
		return r.watch(0)
	}
	return err
}

// came takes the event from the second file, which ends the watch.
func came(first uintptr) (bool, error) {
	var event [1]unix.EpollEvent
	n, err := arrived(int(first), event[:])
	if errors.Is(err, unix.EINTR) {
		return false, nil
	}
	return n > 0 || err != nil, os.NewSyscallError("epoll_wait", err)
}

// watch has the second file watch the first for events.
func (r *readiness) watch(events uint32) (err error) {
	control := r.raw.Control(func(first uintptr) {
		err = os.NewSyscallError("epoll_ctl", unix.EpollCtl(int(first), unix.EPOLL_CTL_MOD, r.sockets, &unix.EpollEvent{Events: events}))
	})
	return errors.Join(control, err)
}

// interrupt ends all waits from now on.
func (r *readiness) interrupt() { _ = r.first.SetReadDeadline(time.Unix(1, 0)) }

// appendArrivals appends what came since it was last called to one of at most so many sockets.
func (r *readiness) appendArrivals(to []arrival, sockets int) []arrival {
	for room := sockets + len(r.events); ; {
		n, err := arrived(r.sockets, r.events)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		for _, e := range r.events[:max(n, 0)] {
			to = append(to, arrival{fd: int(e.Fd), ended: e.Events&^unix.EPOLLIN != 0})
		}
		if room -= n; n < len(r.events) || room <= 0 { // the rest next time, lest new ones keep us here
			return to
		}
	}
}

// duplicate gives a socket a second file descriptor, which the runtime does not poll.
func duplicate(raw syscall.RawConn) (fd int, err error) {
	control := raw.Control(func(own uintptr) { fd, err = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 0) })
	return fd, errors.Join(control, err)
}

// The calls that are made for each look and each read go past the runtime. They do not block, and if it were told of them it
// would wake its watcher of system calls each time that the process was at rest before: this looks every 20 µs then as long as
// anything runs, which with few ranks was a fifth of all CPU.

func readSocket(fd int, p []byte) (int, error) {
	n, _, errno := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), unix.MSG_DONTWAIT, 0, 0)
	return result(n, errno)
}

// arrived takes the events that are there.
func arrived(epoll int, events []unix.EpollEvent) (int, error) {
	const atOnce, sameSignals = 0, 0
	n, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epoll),
		uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), atOnce, sameSignals, 0)
	return result(n, errno)
}

func result(n uintptr, errno syscall.Errno) (int, error) {
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

func writeSocket(fd int, p []byte) (int, error) { return unix.Write(fd, p) }

func closeSocket(fd int) { _ = unix.Close(fd) }

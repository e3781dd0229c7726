// Tells systemd how this process is: datagrams to $NOTIFY_SOCKET, as sd_notify(3) describes them.
//
// Without that socket nothing happens. What cannot be sent at once is dropped, because a supervisor
// must not hold the work up. Thread safety: any thread.
#pragma once

#include <string>

namespace hapax::observe::service_manager {

// The start is done: the process works, or waits for what `status` names. Later calls only change
// the line in `systemctl status`.
void ready(const std::string& status);

// Feeds the watchdog ($WATCHDOG_USEC), if that is due; lock-free.
void alive();

void stopping();

}  // namespace hapax::observe::service_manager

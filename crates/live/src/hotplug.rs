//! News of the kernel about processors that go offline or come online.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::netlink::{KOBJECT_UEVENT, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};
use tokio::io::unix::AsyncFd;

/// The largest message that is read. Longer ones are cut, which loses nothing that is needed.
const SIZE: usize = 4096;
/// The group of messages of the kernel itself.
const FROM_KERNEL: u32 = 1;
/// The path of every processor in a message.
const CPU: &[u8] = b"/devices/system/cpu/cpu";

/// Waits for processors that go offline or come online.
pub(crate) struct Hotplug(Option<AsyncFd<OwnedFd>>);

impl Hotplug {
    /// Opens the news of the kernel. Without it, changes are found at the next event of any kind.
    pub(crate) fn new() -> Hotplug {
        let open = || -> io::Result<AsyncFd<OwnedFd>> {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let socket = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, Some(KOBJECT_UEVENT))?;
            bind(&socket, &SocketAddrNetlink::new(0, FROM_KERNEL))?;
            // SAFETY: the registered `OwnedFd` owns the descriptor, which stays open until the value is
            // dropped.
            #[allow(
                unsafe_code,
                reason = "tokio cannot see that a descriptor stays what it is; there is no other way to wait for one"
            )]
            let socket = unsafe { AsyncFd::register(socket) }?;
            Ok(socket)
        };
        let opened = open();
        if let Err(error) = &opened {
            tracing::info!("no news of the kernel about processors: {error}");
        }
        Hotplug(opened.ok())
    }

    /// Waits for the next news about a processor. Without news, waits for ever.
    pub(crate) async fn changed(&self) {
        let Some(socket) = &self.0 else { return std::future::pending().await };
        loop {
            let Ok(mut ready) = socket.readable().await else { return std::future::pending().await };
            let mut buffer = [0_u8; SIZE];
            match ready.try_io(|socket| Ok(recv(socket.get_ref(), &mut buffer, RecvFlags::empty())?)) {
                Ok(Ok((length, _)))
                    if buffer[..length.min(SIZE)].windows(CPU.len()).any(|part| part == CPU) =>
                {
                    return;
                }
                // Lost messages: too many came at once.
                Ok(Err(error)) if error.raw_os_error() == Some(rustix::io::Errno::NOBUFS.raw_os_error()) => {
                    return;
                }
                _ => {}
            }
        }
    }
}

//! Runs one attempt of a job on Linux, with no rights but the user's own.
//!
//! Each attempt has a folder and a process of its own, the *shim*. The shim starts the command, keeps it within its window, and
//! records its end; it needs no daemon for that. A daemon [`launch`](launch())es an attempt, tells its [`Shim`] what to do with it, and after
//! a restart [`find`](find())s out what has become of it. A command runs at most once for each attempt, whatever is killed when.
//!
//! > A process is meant by number, start and boot ([`Identity`]) and reached through a pidfd, never by its bare number. A death is
//! > proved, by waiting for it or by looking, never concluded from a signal sent.
//!
//! What cannot be enforced without rights is a list, [`Abilities::unenforced`].
//!
//! ```no_run
//! use std::path::Path;
//! use miserly_launch::{Found, Order, Told, find, launch};
//!
//! # fn example(order: &Order) -> Result<(), Box<dyn std::error::Error>> {
//! let (exe, attempt) = (Path::new("/usr/bin/miserly"), Path::new("/var/lib/miserly/17.1"));
//! let mut shim = launch(exe, attempt, order)?;
//! let reply = shim.tell(&Told::Stop)?;
//! drop(shim); // The daemon ends; the job does not.
//! match find(attempt)? {
//!     Found::Alive(shim) => println!("still there: {:?}", shim.identity()),
//!     Found::Ended(end) => println!("ended: {:?}", end.exit),
//!     Found::NeverRan => println!("to be launched again"),
//!     Found::Lost(lost) => println!("its shim was killed; so were {:?}", lost.killed),
//! }
//! # Ok(())
//! # }
//! ```
#![cfg(target_os = "linux")]

mod time;

mod order;

mod told;

mod end;

mod launch;

mod find;

mod handle;

mod probe;

pub mod shim;

mod error;

mod folder;

mod identity;

mod session;

mod procfs;

mod cpus;

mod line;

mod wait;

mod lossless;

mod sys;

pub use end::{Cause, End, Exit, Failure};
pub use error::{FindError, LaunchError, TellError};
pub use find::{Found, Lost, LostTo, find};
pub use folder::{RecordError, Started};
pub use handle::{PATIENCE, Shim};
pub use identity::Identity;
pub use launch::launch;
pub use order::{Draft, Limits, Mode, Order, OrderError, Output, Window};
pub use probe::{Abilities, Launcher, Unenforced};
pub use shim::STOP_PATIENCE;
pub use time::BootTime;
pub use told::{Answer, Phase, Refusal, Reply, State, Told};

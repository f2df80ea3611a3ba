//! The live page of a machine, served to one user on this machine only.
//!
//! [`Server::bind`] listens on the loopback address; [`Server::run`] answers until it is stopped. The first visit needs a link with a
//! token that works once; later requests need a key that only that visit got. There is no cookie, so no other site and no other port
//! can use it.

mod actions;

mod answer;

mod assets;

mod guard;

mod key;

mod lists;

mod live;

mod packed;

mod patch;

mod page;

mod routes;

mod server;

mod wanted;

pub use guard::Proxy;
pub use server::{Options, Server, ServerError};

/// Returns facts without pools and jobs, at the start of a log.
#[cfg(test)]
fn no_facts() -> miserly_view::Facts {
    miserly_view::Facts {
        now: 0,
        clock: miserly_view::Clock::SinceStart,
        title: String::new(),
        live: false,
        earlier: false,
        uid: None,
        pools: vec![],
        jobs: vec![],
        account: miserly_view::Account::default(),
    }
}

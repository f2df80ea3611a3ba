//! Static job classes on hosts with individual rules (Chiang and Vernon 2001, section 2.1).

mod queues;

mod executing;

mod lsf;

mod policy;

pub use lsf::Lsf;
pub use policy::LSF;

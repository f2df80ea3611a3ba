//! Attempts: the launcher that runs them, and their windows and ends.

pub(crate) mod adoption;
pub(crate) mod end;
pub(crate) mod late_start;
pub(crate) mod launcher;
pub(crate) mod overrun;
pub(crate) mod planned_windows;
pub(crate) mod resync;
pub(crate) mod start_observer;
pub(crate) mod waiting_shims;

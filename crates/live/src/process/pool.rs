//! A fixed number of threads for work that waits: for the disk, for a new shim, for dying processes.

use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Threads that carry out tasks in order. They end with the pool, after their present tasks.
#[derive(Debug)]
pub(super) struct Pool<T>(Sender<T>);

impl<T: Send + 'static> Pool<T> {
    /// Starts the threads. Each calls `run` for its tasks.
    ///
    /// # Errors
    /// If the machine has no thread left.
    pub(super) fn start(
        name: &str,
        threads: usize,
        run: impl Fn(T) + Clone + Send + 'static,
    ) -> io::Result<Pool<T>> {
        let (sender, tasks) = mpsc::channel();
        let tasks = Arc::new(Mutex::new(tasks));
        for nth in 0..threads {
            let (tasks, run) = (Arc::clone(&tasks), run.clone());
            let thread = thread::Builder::new().name(format!("{name} {nth}")).stack_size(256 * 1024);
            thread.spawn(move || {
                while let Some(task) = next(&tasks) {
                    run(task);
                }
            })?;
        }
        Ok(Pool(sender))
    }

    /// Adds a task.
    pub(super) fn submit(&self, task: T) {
        // The threads end after this value.
        let _ = self.0.send(task);
    }
}

/// Waits for the next task. Returns `None` if there will be none.
fn next<T>(tasks: &Mutex<Receiver<T>>) -> Option<T> {
    tasks.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_waits_delays_only_its_own_thread() {
        let (sender, results) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let released = Arc::new(Mutex::new(released));
        let run = move |task: u32| {
            if task == 0 {
                let _ = released.lock().unwrap().recv();
            }
            sender.send(task).unwrap();
        };
        let pool = Pool::start("test", 2, run).unwrap();
        for task in 0..4 {
            pool.submit(task);
        }
        let three: Vec<u32> = results.iter().take(3).collect();
        assert_eq!(three, [1, 2, 3]);
        drop(release);
        assert_eq!(results.recv(), Ok(0));
        drop(pool);
        assert!(results.recv().is_err(), "the threads have ended");
    }
}

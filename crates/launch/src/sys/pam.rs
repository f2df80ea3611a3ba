//! The system's modules for accounts and sessions (PAM), by the library of the system.
//!
//! It is loaded at run time, so that neither the build nor a machine without PAM needs it.

use std::ffi::{CStr, CString, OsString, c_char, c_int, c_void};
use std::io;
use std::mem::transmute;
use std::os::unix::ffi::OsStringExt;
use std::ptr::null_mut;

const LIBRARY: &CStr = c"libpam.so.0";

const SUCCESS: c_int = 0;
/// The answer to a module that asks the user something: no user is there.
const CONVERSATION_ERROR: c_int = 19;
const SILENT: c_int = 0x8000;
const ESTABLISH_CRED: c_int = 0x0002;
const DELETE_CRED: c_int = 0x0004;
const DATA_SILENT: c_int = 0x4000_0000;

/// `struct pam_conv`.
#[repr(C)]
struct Conversation {
    function: Converse,
    data: *mut c_void,
}

type Handle = *mut c_void;
type Converse = extern "C" fn(c_int, *const *const c_void, *mut *mut c_void, *mut c_void) -> c_int;
type Start = unsafe extern "C" fn(*const c_char, *const c_char, *const Conversation, *mut Handle) -> c_int;
type WithFlags = unsafe extern "C" fn(Handle, c_int) -> c_int;
type Environment = unsafe extern "C" fn(Handle) -> *mut *mut c_char;
type Describe = unsafe extern "C" fn(Handle, c_int) -> *const c_char;

/// The modules of a service of PAM.
#[derive(Clone, Debug)]
pub struct Pam {
    service: CString,
    start: Start,
    check_account: WithFlags,
    set_credentials: WithFlags,
    open_session: WithFlags,
    close_session: WithFlags,
    environment: Environment,
    describe: Describe,
    end: WithFlags,
}

extern "C" fn refuse(_: c_int, _: *const *const c_void, _: *mut *mut c_void, _: *mut c_void) -> c_int {
    CONVERSATION_ERROR
}

impl Pam {
    /// Loads the library for a service, a file of `/etc/pam.d`. It stays loaded.
    ///
    /// # Errors
    /// The system has no PAM, or the name is none of a service.
    pub fn open(service: &str) -> io::Result<Pam> {
        let is_name = |name: &str| !name.is_empty() && !name.contains(['/', '\0']) && !name.starts_with('.');
        let service = CString::new(service).ok().filter(|name| name.to_str().is_ok_and(is_name));
        let service = service.ok_or_else(|| io::Error::other("`pam` is no name of a file in /etc/pam.d"))?;
        #[allow(unsafe_code, reason = "the library is loaded at run time")]
        // SAFETY: the name is a C string. The library is never unloaded, so its functions stay valid.
        let library = unsafe { libc::dlopen(LIBRARY.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        if library.is_null() {
            return Err(io::Error::other("`pam` is set, and the system has no libpam.so.0"));
        }
        let find = |name: &CStr| {
            #[allow(unsafe_code, reason = "the library is loaded at run time")]
            // SAFETY: the library is loaded, and the name is a C string.
            let found = unsafe { libc::dlsym(library, name.as_ptr()) };
            let missing = || io::Error::other(format!("libpam.so.0 has no {}", name.to_string_lossy()));
            if found.is_null() { Err(missing()) } else { Ok(found) }
        };
        #[allow(unsafe_code, reason = "the library is loaded at run time")]
        // SAFETY: these functions have these types in every version of libpam.so.0 (pam_appl.h).
        unsafe {
            Ok(Pam {
                service,
                start: transmute::<*mut c_void, Start>(find(c"pam_start")?),
                check_account: transmute::<*mut c_void, WithFlags>(find(c"pam_acct_mgmt")?),
                set_credentials: transmute::<*mut c_void, WithFlags>(find(c"pam_setcred")?),
                open_session: transmute::<*mut c_void, WithFlags>(find(c"pam_open_session")?),
                close_session: transmute::<*mut c_void, WithFlags>(find(c"pam_close_session")?),
                environment: transmute::<*mut c_void, Environment>(find(c"pam_getenvlist")?),
                describe: transmute::<*mut c_void, Describe>(find(c"pam_strerror")?),
                end: transmute::<*mut c_void, WithFlags>(find(c"pam_end")?),
            })
        }
    }

    /// Asks the account modules whether a user may use the machine now.
    ///
    /// # Errors
    /// The reason why not, as PAM has it.
    pub fn check_account(&self, user: &str) -> io::Result<()> {
        self.run(user, &[("", self.check_account, 0)], SUCCESS).map(|_| ())
    }

    /// Checks an account and opens a session for this process. Returns the variables that the modules set.
    ///
    /// Resource limits and groups that a module sets apply to this process. The process becomes the command, so another one
    /// closes the session.
    ///
    /// # Errors
    /// A module refuses the account or the session, with its text.
    pub(crate) fn open_session(&self, user: &str) -> io::Result<Vec<(OsString, OsString)>> {
        let steps = [
            ("PAM refuses the account: ", self.check_account, SILENT),
            ("PAM refuses its credentials: ", self.set_credentials, ESTABLISH_CRED | SILENT),
            ("PAM refuses its session: ", self.open_session, SILENT),
        ];
        self.run(user, &steps, DATA_SILENT)
    }

    /// Closes a session that another process has opened. What its modules kept in that process is not known here.
    ///
    /// # Errors
    /// A module fails, with its text.
    pub(crate) fn close_session(&self, user: &str) -> io::Result<()> {
        let steps = [
            ("PAM does not close the session: ", self.close_session, SILENT),
            ("PAM does not delete the credentials: ", self.set_credentials, DELETE_CRED | SILENT),
        ];
        self.run(user, &steps, SUCCESS).map(drop)
    }

    /// Takes steps for a user: the words before the text of a failure, the function, and its flags. Returns the variables.
    fn run(
        &self,
        user: &str,
        steps: &[(&str, WithFlags, c_int)],
        end: c_int,
    ) -> io::Result<Vec<(OsString, OsString)>> {
        let user = CString::new(user)?;
        let conversation = Conversation { function: refuse, data: null_mut() };
        let mut handle: Handle = null_mut();
        #[allow(unsafe_code, reason = "the functions of a C library")]
        // SAFETY: the strings and the conversation outlive the handle, which one thread uses. It is ended once, and only if
        // it was started.
        unsafe {
            let started =
                (self.start)(self.service.as_ptr(), user.as_ptr(), &raw const conversation, &raw mut handle);
            if started != SUCCESS {
                return Err(io::Error::other(format!("PAM does not start (error {started})")));
            }
            for (refusal, step, flags) in steps {
                let result = step(handle, *flags);
                if result != SUCCESS {
                    let text = text((self.describe)(handle, result));
                    (self.end)(handle, result);
                    return Err(io::Error::other(format!("{refusal}{text}")));
                }
            }
            let variables = variables((self.environment)(handle));
            (self.end)(handle, SUCCESS | end);
            Ok(variables)
        }
    }
}

#[allow(unsafe_code, reason = "a text of a C library")]
// SAFETY: the caller passes a constant string, or null.
unsafe fn text(text: *const c_char) -> String {
    // SAFETY: as above.
    if text.is_null() {
        String::new()
    } else {
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }
}

/// Reads a list of `NAME=VALUE`, which ends with a null pointer, and frees it.
#[allow(unsafe_code, reason = "a list of a C library")]
// SAFETY: the caller passes a list that the library has allocated, or null.
unsafe fn variables(list: *mut *mut c_char) -> Vec<(OsString, OsString)> {
    let mut read = vec![];
    let mut next = list;
    // SAFETY: each element before the null pointer is a text of its own, and the list ends with a null pointer.
    unsafe {
        while !next.is_null() && !(*next).is_null() {
            let text = CStr::from_ptr(*next).to_bytes();
            if let Some(at) = text.iter().position(|byte| *byte == b'=') {
                let value = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
                read.push((value(&text[..at]), value(&text[at + 1..])));
            }
            libc::free((*next).cast());
            next = next.add(1);
        }
        libc::free(list.cast());
    }
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_no_service() {
        for name in ["", ".", "../x", "/etc/passwd", "a\0b"] {
            assert!(Pam::open(name).is_err(), "{name:?}");
        }
    }
}

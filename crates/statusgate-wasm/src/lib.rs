//! [`statusgate_pages::calls`] as three functions, for `hack/site/calls.js`.
//!
//! The host writes the name of a call and its request into the memory that [`reserve`] returns, and reads the answer of [`answer`].
//! It decides nothing and reads nothing else. Begin with [`answer`].

#![allow(unsafe_code, reason = "the names of exported functions; there is no other unsafe code")]

use std::cell::RefCell;

thread_local! {
    static GIVEN: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static ANSWER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Memory for the name of a call and its request.
#[unsafe(no_mangle)]
pub extern "C" fn reserve(bytes: usize) -> *mut u8 {
    GIVEN.with_borrow_mut(|given| {
        given.clear();
        given.resize(bytes, 0);
        given.as_mut_ptr()
    })
}

/// Answers a call. The memory begins with the name, which has this length, and the request follows. The answer is
/// valid until the next call.
#[unsafe(no_mangle)]
pub extern "C" fn answer(name_bytes: usize) -> *const u8 {
    GIVEN.with_borrow(|given| {
        let (name, request) = given.split_at(name_bytes.min(given.len()));
        let answer = statusgate_pages::calls::call(&String::from_utf8_lossy(name), request);
        ANSWER.with_borrow_mut(|kept| {
            *kept = answer;
            kept.as_ptr()
        })
    })
}

/// The length of the answer.
#[unsafe(no_mangle)]
pub extern "C" fn answer_bytes() -> usize {
    ANSWER.with_borrow(Vec::len)
}

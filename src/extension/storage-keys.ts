/** The items of `chrome.storage` through which the service worker and the options page communicate. */

/** In `chrome.storage.local`. The page writes it. */
export const SETTINGS_KEY = 'settings'
/** In `chrome.storage.session`: a `ConnectionState`. The service worker writes it. */
export const STATE_KEY = 'connection'
/** In `chrome.storage.session`. The page changes it to start an attempt at once. */
export const WAKE_KEY = 'wake'

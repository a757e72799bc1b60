/** What the service worker and the options page exchange: items of `chrome.storage`, and no messages. */

/** In `chrome.storage.local`. The page writes it. */
export const SETTINGS_KEY = 'settings'
/** In `chrome.storage.session`: a `ConnectionState`. The service worker writes it. */
export const STATE_KEY = 'connection'
/** In `chrome.storage.session`. The page writes it to have a connection tried at once. */
export const WAKE_KEY = 'wake'

/** The site looks like VitePress, with the fonts of the reader's system. */
import DefaultTheme from 'vitepress/theme-without-fonts'
import './style.css'

export default { extends: DefaultTheme }

// A ball of two colours before a mirror, which shows its other side. Odd, but right.
#include "common.inc"
camera { location <2.6, 5.4, -14> right x*3/2 up y look_at <-0.2, 2.7, 1> angle 45 }
SoftLight(<8, 15, -10>, <0,1,2>, <1.0,0.94,0.85>*1.7, 4)
SkyDome(<0.62,0.66,0.72>*0.8)
box { <-14,-1.5,-16>, <14,0,5> Tx(0, Wood(<0.30,0.19,0.11>, <0.56,0.40,0.26>)) }
plane { -z, -4.8 Tx(0, Matt(<0.58,0.62,0.60>)) }
plane { z, -30 Tx(0, Matt(<0.62,0.58,0.50>)) no_shadow }
box { <-4.1,0.5,4.55>, <4.1,6.2,4.6>
  #if (IdPass = 2) Tx(1, T_Steel) #else texture { pigment { rgb 0 } finish { ambient 0 diffuse 0 reflection { #if (IdPass) 1 #else 0.92 #end } } } #end }
difference { box { <-4.6,0,4.35>, <4.6,6.7,4.79> } box { <-4.1,0.5,4>, <4.1,6.2,5> } Tx(2, Matt(<0.20,0.14,0.10>)) }
// Red towards the viewer, white towards the mirror; the seam between them is seen from both sides.
#declare Colour = texture { pigment { gradient z color_map { [0 rgb <0.62,0.07,0.05>] [0.5 rgb <0.62,0.07,0.05>] [0.5 rgb <0.85,0.83,0.76>] [1 rgb <0.85,0.83,0.76>] } translate -z*0.5 scale 3.2 translate z*-0.15 } finish { diffuse 0.8 specular 0.35 roughness 0.012 } };
sphere { 0, 1.3 Tx(3, Colour) rotate <0,-32,0> translate <-1.6,1.27,1.2> }
// A cup with its handle on the right, a small ball on the left; both balls sink in a little, so that no light leaks below them.
union { Cup(4, Glaze(<0.14,0.28,0.40>), 4) scale 0.95 rotate y*15 translate <1.7,0,0.6> }
union { sphere { <0,0.62,0>, 0.62 } Tx(5, Glaze(<0.70,0.50,0.06>)) translate <-4.3,-0.02,-0.6> }

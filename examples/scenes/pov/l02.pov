// A courtyard with café tables in the morning sun, seen from a window: ten tables, each with three or four chairs.
#declare Large = true;
#include "common.inc"
camera { location <0.6, 6.1, -7.0> right x*3/2 up y look_at <0.1, 0, 0.6> angle 59 }
#declare SunDir = <-7, 9, -3>;
SoftLight(SunDir*30, <0,0,0>, <1.0,0.93,0.80>*1.05, 4)
light_source { <6, 20, -14> rgb <0.75,0.85,1.0>*0.34 shadowless }
SkyDome(<0.55,0.65,0.8>)
#declare R = seed(7);
#macro Paint(C) texture { pigment { rgb C } finish { ambient 0.06 diffuse 0.75 specular 0.35 roughness 0.02 } } #end
#macro Chalk(C) texture { pigment { rgb C } finish { ambient 0.06 diffuse 0.8 } } #end
// Paving: slabs of four greys in bond.
#declare Slab = texture { pigment { cells scale <0.96,0.5,0.48> translate <0,0,0.24>
  color_map { [0 rgb <0.56,0.53,0.48>] [0.4 rgb <0.63,0.60,0.55>] [1 rgb <0.70,0.66,0.60>] } } finish { ambient 0.06 diffuse 0.8 } };
#declare Slabs = texture { brick texture { pigment { rgb <0.44,0.42,0.39> } finish { ambient 0.06 diffuse 0.8 } }, texture { Slab } brick_size <0.96,0.5,0.48> mortar 0.022 };
plane { y, 0 Tx(7, Slabs) }

#macro Chair(Id, C, Short)
  union {
    #for (I, -2, 2) box { <-0.20, 0.44, I*0.082-0.034>, <0.20, 0.46, I*0.082+0.034> } #end
    box { <-0.20,0.41,-0.2>, <-0.17,0.44,0.2> } box { <0.17,0.41,-0.2>, <0.20,0.44,0.2> }
    cylinder { <-0.19,0,0.19>, <-0.19,0.88,0.25>, 0.017 } cylinder { <0.19,0.17,0.2016>, <0.19,0.88,0.25>, 0.017 }
    #if (!Short) cylinder { <0.19,0,0.19>, <0.19,0.17,0.2016>, 0.017 #if (Id = 1) Tx(8, C) #end } #end
    #for (I, 0, 2) box { <-0.19,-0.035,-0.009>, <0.19,0.035,0.009> rotate x*4 translate <0, 0.60+I*0.11, 0.222+I*0.008> } #end
    cylinder { <-0.18,0,-0.19>, <-0.18,0.43,-0.19>, 0.017 }
    cylinder { <0.18,0,-0.19>, <0.18,0.43,-0.19>, 0.017 }
    Tx(Id, C)
  }
#end
#declare Red = Paint(<0.60,0.10,0.07>); #declare Green = Paint(<0.09,0.33,0.22>);
#declare Blue = Paint(<0.10,0.25,0.48>); #declare Cream = Paint(<0.80,0.74,0.60>); #declare Ochre = Paint(<0.78,0.50,0.10>);
#declare Colours = array[5] { Red, Green, Blue, Cream, Ochre };

#declare Saucer1 = cylinder { 0, <0,0.012,0>, 0.06 };
#declare Cup1 = difference { cone { <0,0.012,0>, 0.024, <0,0.068,0>, 0.036 } cone { <0,0.02,0>, 0.02, <0,0.075,0>, 0.032 } };
#declare White = Paint(<0.86,0.85,0.80>);
#declare Coffee = Chalk(<0.10,0.045,0.02>);
#macro Service()
  union { object { Saucer1 } object { Cup1 } torus { 0.02, 0.006 rotate x*90 translate <0.047,0.042,0> } Tx(2, White) }
  cylinder { <0,0.05,0>, <0,0.057,0>, 0.0285 Tx(2, Coffee) }
#end
#macro Bottle(C) union { cylinder { 0, y*0.15, 0.032 } cone { y*0.15, 0.032, y*0.2, 0.012 } cylinder { y*0.2, y*0.26, 0.012 } Tx(2, Paint(C)) } #end
#macro Vase(C) union { cone { 0, 0.025, y*0.11, 0.035 Tx(2, White) }
  #for (J, 0, 5) sphere { <0.045*cos(J*1.05), 0.16+0.02*mod(J,2), 0.045*sin(J*1.05)>, 0.03 Tx(2, Chalk(C)) } #end
  sphere { y*0.19, 0.032 Tx(2, Chalk(C)) } sphere { y*0.135, 0.045 Tx(2, Chalk(<0.16,0.35,0.12>)) } } #end
#macro Carafe() union { cylinder { 0, y*0.12, 0.042 } cone { y*0.12, 0.042, y*0.2, 0.022 } Tx(2, Paint(<0.55,0.70,0.75>)) } #end
#macro Plate(C) union { cylinder { 0, y*0.014, 0.085 Tx(2, White) } sphere { 0, 1 scale <0.055,0.032,0.042> translate y*0.025 Tx(2, Chalk(C)) } } #end

#macro Table(X, Z, N, Turn, K, Odd)
  union {
    cylinder { y*0.71, y*0.735, 0.40 Tx(2, Paint(<0.78,0.76,0.70>)) }
    torus { 0.40, 0.013 translate y*0.7225 Tx(2, Paint(<0.25,0.25,0.26>)) }
    cylinder { y*0.02, y*0.71, 0.03 Tx(2, Paint(<0.16,0.16,0.17>)) }
    cone { 0, 0.23, y*0.03, 0.21 Tx(2, Paint(<0.16,0.16,0.17>)) }
    #for (J, 0, N-1)
      union { Service() rotate y*(J*70) translate <0, 0.735, -0.24> rotate y*(Turn + J*360/N + 22) }
      #if (mod(J+K,2)=0) object { Plate(<0.72-0.1*mod(K,3),0.42,0.16>) translate <0,0.735,-0.25> rotate y*(Turn + J*360/N - 23) } #end
    #end
    #switch (mod(K*3+N, 4))
      #case (0) object { Vase(<0.80,0.18,0.30>) translate y*0.735 } #break
      #case (1) object { Bottle(<0.10,0.28,0.12>) translate y*0.735 } object { Bottle(<0.36,0.16,0.05>) translate <0.08,0.735,0.03> } #break
      #case (2) object { Vase(<0.90,0.72,0.15>) translate y*0.735 } #break
      #else object { Carafe() translate y*0.735 } #end
    translate <X,0,Z>
  }
  #for (J, 0, N-1)
    #local A = Turn + J*360/N + (rand(R)-0.5)*22; #local D = -0.60 - rand(R)*0.14; #local T = 180 + (rand(R)-0.5)*30;
    object { Chair((J+1 = Odd ? 1 : 3), Colours[mod(K,5)], (J+1 = Odd)*Anomalous) rotate y*T translate z*D rotate y*A translate <X,0,Z> }
  #end
#end
#declare Spots = array[10][5] {
 {-5.0,2.7,3,10,0},{-2.1,3.0,4,45,1},{0.9,2.6,3,70,2},{3.7,3.0,4,20,3},
 {-3.7,0.2,4,30,3},{-0.8,0.0,3,0,1},{1.8,0.3,4,55,4},{4.7,0.3,3,200,0},
 {-2.1,-2.0,4,30,0},{0.8,-2.3,3,15,2} };
#for (I, 0, 9)
  Table(Spots[I][0], Spots[I][1], Spots[I][2], Spots[I][3], Spots[I][4], (I = 6)*4)
#end
// Fallen leaves, planters, a wall with doors behind.
#for (I, 0, 90)
  sphere { 0, 1 scale <0.035,0.004,0.022> rotate y*rand(R)*360 translate <-5.5+rand(R)*11, 0.006, -3.4+rand(R)*8> Tx(7, Chalk(<0.50,0.30+0.16*rand(R),0.08>*(0.7+0.4*rand(R)))) }
#end
#macro Shrub(X, Z, C)
  union { box { <-0.4,0,-0.4>, <0.4,0.42,0.4> Tx(4, Chalk(<0.55,0.30,0.20>)) } box { <-0.43,0.38,-0.43>, <0.43,0.46,0.43> Tx(4, Chalk(<0.60,0.34,0.23>)) }
    #for (J, 0, 40) sphere { <0.28*cos(J*2.4)*rand(R), 0.55+0.5*rand(R), 0.28*sin(J*2.4)*rand(R)>, 0.13+0.09*rand(R) Tx(4, Chalk(C*(0.7+0.5*rand(R)))) } #end
    translate <X,0,Z> }
#end
#for (I, 0, 4) Shrub(-6.8+I*3.4, 4.75, <0.13,0.34,0.11>) #end
Shrub(-4.5, -1.7, <0.20,0.40,0.12>) Shrub(-4.1, -2.9, <0.20,0.40,0.12>) Shrub(3.4, -1.6, <0.18,0.38,0.14>) Shrub(3.2, -2.8, <0.18,0.38,0.14>)
box { <-16,0,5.4>, <16,7,6> Tx(0, Chalk(<0.80,0.68,0.52>)) }
#for (I, 0, 4)
  box { <-8.7+I*3.4,0,5.3>, <-7.3+I*3.4,2.4,5.41> Tx(5, Chalk(<0.18,0.30,0.34>)) }
  box { <-8.82+I*3.4,0,5.28>, <-8.7+I*3.4,2.52,5.42> Tx(5, Chalk(<0.86,0.82,0.74>)) } box { <-7.3+I*3.4,0,5.28>, <-7.18+I*3.4,2.52,5.42> Tx(5, Chalk(<0.86,0.82,0.74>)) }
  sphere { <-7.44+I*3.4,1.1,5.24>, 0.05 Tx(5, T_Brass2) }
  box { <-8.7+I*3.4,2.4,5.28>, <-7.3+I*3.4,2.52,5.42> Tx(5, Chalk(<0.86,0.82,0.74>)) }
  #for (J, 0, 3) box { <-8.55+I*3.4+mod(J,2)*0.6,0.25+1.05*floor(J/2),5.28>, <-8.05+I*3.4+mod(J,2)*0.6,1.15+1.05*floor(J/2),5.4> Tx(5, Paint(<0.45,0.56,0.60>)) } #end
#end
